"""The island: an ask/tell state machine that advances one generation per round (SPEC §4).

It knows nothing of Ray, files or models. `ask()` says what is needed next and changes nothing;
the tells (`scored`, `proposed`, …) return the events that they decided, in order and already
applied: the shell writes them. State is the fold of the island's own events plus the foreign
candidates it has learnt. What is not in the record (a round begun without moves, other islands'
seed scores) is asked for again after a restore; attempts are kept, so asking again costs nothing.
Not for concurrent use: one owner.

A crash may cut a batch of events anywhere: `restore` decides the missing rest again from the
record, and `settle` (or the next tell) returns it. A tell that answers nothing that is asked is
ignored and decides nothing, so that work executed twice is recorded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from milo.core.attempt import Usage
from milo.core.errors import RecordError
from milo.core.events import (
    CandidateProposed,
    CandidateScored,
    Change,
    Event,
    IslandFounded,
    MoveApplied,
    MoveVoided,
    ProposalSentBack,
    RoundEnded,
)
from milo.core.fitness import Evaluation
from milo.core.lineage import Lineage
from milo.core.moves import Move, Speciate, islands_touched
from milo.core.topology import IslandState, Topology
from milo.search.deciding import closing, following
from milo.search.draws import draw_seed
from milo.search.guidance import guidance
from milo.search.needs import (
    Closed,
    IslandSetup,
    Need,
    NeedChild,
    NeedConsultation,
    NeedRound,
    NeedScores,
    SeedRef,
)
from milo.search.parents import choose_parents
from milo.search.preserving import next_probe
from milo.search.progress import Standing
from milo.search.record import IslandRecord
from milo.search.selection import selection_of
from milo.search.voiding import why_void

__all__ = [
    "Closed",
    "Island",
    "IslandSetup",
    "Need",
    "NeedChild",
    "NeedConsultation",
    "NeedRound",
    "NeedScores",
    "SeedRef",
]


class Island:
    """One island's search. Make it by `found`, `found_speciated` or `restore`."""

    def __init__(self, setup: IslandSetup) -> None:
        self.setup = setup
        self._record = IslandRecord(setup)
        self._selection = selection_of(setup.strategy.selection)
        self._owed: list[Event] = []
        self._consulted = -1
        self._parents: tuple[str, ...] = ()
        self._error, self._tries = "", 0
        self._usage = Usage()
        self._ahead = 0
        self._sent_back: tuple[str, ...] = ()

    # --- founding and restoring ---------------------------------------------------------------

    @classmethod
    def found(
        cls, setup: IslandSetup, mutator: str, root: SeedRef, search: Sequence[str]
    ) -> tuple[Island, list[Event]]:
        """A new island on one seed; the events found it and enter the seed in its lineage."""
        island = cls(setup)
        founded = IslandFounded(
            island=setup.island, mutator=mutator, root=root.candidate, search=tuple(search)
        )
        seed = CandidateProposed(
            island=setup.island,
            candidate=root.candidate,
            round=0,
            parents=(),
            harness=root.harness,
            mutator="",
            change=Change(title="seed"),
        )
        return island, [island._apply(founded), island._apply(seed)]

    @classmethod
    def found_speciated(
        cls,
        setup: IslandSetup,
        move: Speciate,
        source_state: IslandState,
        members: Sequence[str],
        niche: str,
        foreign_events: Iterable[Event],
    ) -> tuple[Island, list[Event]]:
        """A new island from a subtree of another; `source_state` is as the move found it.

        It takes the members (as `moved_members` gave them before the move), the source's search
        set, reference point and round, and a stall count of zero. Nothing is scored, unless a
        Curriculum at the same boundary left the source without a frame; members' scores on tasks
        of a later search set are copied into the shard. `foreign_events` must hold the members
        and all their ancestors, with their scores.
        """
        island = cls(setup)
        history = tuple(foreign_events)
        island.learn(history)
        founded = IslandFounded(
            island=move.new_island,
            mutator=move.mutator,
            root=members[0],
            members=tuple(members),
            source=move.island,
            niche=niche,
            search=source_state.search,
            epoch=source_state.epoch,
            frame=source_state.frame,
        )
        events = [island._apply(founded)]
        events += [island._apply(copy) for copy in island._record.rescored(members, history)]
        known = [island._record.validation_accuracy(member) or 0.0 for member in members]
        start = RoundEnded(
            island=move.new_island,
            round=source_state.round,
            stall=0,
            best_validation=max(known),
        )
        return island, [*events, island._apply(start), *island._advance()]

    @classmethod
    def restore(
        cls, setup: IslandSetup, own_events: Iterable[Event], foreign_events: Iterable[Event] = ()
    ) -> Island:
        """The island as its record tells it, cut anywhere after its founding; see `settle`."""
        island = cls(setup)
        island.learn(foreign_events)
        for event in own_events:
            island._apply(event)
        island.learn(())
        island._owed = island._advance()
        return island

    def settle(self) -> list[Event]:
        """Events that follow from a restored record and are not yet in it: write them first."""
        owed, self._owed = self._owed, []
        return owed

    def learn(self, events: Iterable[Event]) -> None:
        """Import other shards' candidates (proposals, scores, verdicts); idempotent.

        Needed for graft donors and for speciated members, with their ancestors. An event whose
        candidate or parents are not yet known waits until they are.
        """
        self._record.learn(events)

    @property
    def state(self) -> IslandState:
        """The island as its shard tells it."""
        return self._record.state

    @property
    def lineage(self) -> Lineage:
        """The island's candidates, and the foreign ones it has learnt. Not to be changed."""
        return self._record.lineage

    @property
    def topology(self) -> Topology:
        """This island alone, and the moves applied to it. Not to be changed."""
        return self._record.topology

    @property
    def child_round(self) -> int:
        """The round of the child that is made next."""
        return self.state.round + 1 + self._ahead

    def foresee(self, round_: int) -> Island:
        """A copy, as the island stands now, that asks for the child of this round and no more.

        What it decides stays in it: its events are for `adopt`, when all earlier rounds are over.
        """
        twin = Island(self.setup)
        twin._record = self._record.copy()
        twin._record.begun = True
        twin._ahead = round_ - self.state.round - 1
        return twin

    def known_digests(self) -> frozenset[str]:
        """Harness digests that a child must differ from, for a brief's forbidden ones."""
        return frozenset(node.harness for node in self._record.relatives() if node.harness)

    # --- asking -------------------------------------------------------------------------------

    def ask(self) -> Need:
        """What the island needs next: the same answer until something is told."""
        state = self.state
        if state.closed:
            return Closed(reason=state.closed)
        if state.round >= 0 and not self._record.begun:
            return self._ask_boundary(state)
        if state.frame is None:
            return self._ask_frame(state)
        node = self._record.current()
        if node is None:
            return self._ask_child(state)
        probe = next_probe(self._record, node) if self._record.awaits_verdict(node) else None
        if probe is not None:
            return probe
        split = "search" if node.verdict is None else "validation"
        tasks = state.search if node.verdict is None else self.setup.validation
        return self._record.ask_scores(node.candidate, node.harness, split, tasks)

    def _ask_boundary(self, state: IslandState) -> Need:
        strategy = self.setup.strategy
        stalled = Standing(stall=state.stall).is_stalled(strategy.patience)
        if strategy.orchestrator and stalled and self._consulted < state.round:
            return NeedConsultation(round=state.round)
        return NeedRound(round=state.round + 1)

    def _ask_frame(self, state: IslandState) -> NeedScores:
        for candidate, harness in self._record.to_frame().items():
            if self._record.lacking(candidate, "search", state.search):
                return self._record.ask_scores(candidate, harness, "search", state.search)
        raise RecordError(f"island {state.island} has no frame and nothing left to score")

    def _ask_child(self, state: IslandState) -> NeedChild:
        round_ = self.child_round
        if not self._parents:
            self._parents = choose_parents(self._record, self._selection, round_)
        hints = guidance(self.setup.strategy, self.lineage, self._parents, state.search)
        return NeedChild(
            round=round_,
            parents=self._parents,
            seed=draw_seed(self.setup, round_, self._tries),
            error=self._error,
            tries=self._tries,
            candidate=self._record.next_id(self._ahead),
            signals=hints.signals,
            library=hints.library,
        )

    # --- telling ------------------------------------------------------------------------------

    def scored(
        self, candidate: str, split: str, evaluation: Evaluation, missing: Sequence[str] = ()
    ) -> list[Event]:
        """The scores that were asked for; tasks without a valid attempt are missing.

        An incomplete evaluation is asked for twice more, then left: a child without a verdict.
        """
        need = self.ask()
        if not isinstance(need, NeedScores) or (need.candidate, need.split) != (candidate, split):
            return self.settle()
        absent = {*missing, *(task for task in need.tasks if task not in evaluation)}
        if self._record.is_visitor(candidate):
            self._record.visit(candidate, evaluation, sorted(absent))
            return self._decided()
        return self._decided(
            CandidateScored(
                island=self.setup.island,
                candidate=candidate,
                split=split,
                scores=dict(evaluation),
                missing=tuple(sorted(absent)),
            )
        )

    def made_from(self, parent: str) -> None:
        """The mutator chose this parent of the child that is asked for, instead of the given."""
        self._parents = (parent,)

    def proposed(
        self, harness: str, change: Change, patch_lines: int = 0, usage: Usage | None = None
    ) -> list[Event]:
        """A child that passed preflight, by its harness digest."""
        need = self.ask()
        if not isinstance(need, NeedChild):
            return self.settle()
        return self._decided(
            CandidateProposed(
                island=self.setup.island,
                candidate=need.candidate,
                round=need.round,
                parents=need.parents,
                harness=harness,
                mutator=self.state.mutator,
                change=change,
                patch_lines=patch_lines,
                tries=self._tries + 1,
                usage=self._usage + (usage or Usage()),
                sent_back=self._sent_back,
                seen=self.state.round,
            )
        )

    def adopt(self, made: Sequence[Event]) -> list[Event]:
        """What a copy decided for this round (`foresee`): refused proposals, and the child."""
        need = self.ask()
        if not isinstance(need, NeedChild) or getattr(made[-1], "round", -1) != need.round:
            return self.settle()
        return self._decided(*made)

    def sent_back(self, error: str, usage: Usage | None = None, full: str = "") -> list[Event]:
        """A child that failed preflight; after the last try it is recorded invalid.

        `error` is for mutators, `full` (or the same) for the run's owner.
        """
        need = self.ask()
        if not isinstance(need, NeedChild):
            return self.settle()
        if self._tries + 1 >= self.setup.strategy.mutation_tries:
            self._sent_back += (full or error,)
            return self.proposed("", Change(title="no valid child", diagnosis=error), 0, usage)
        return self._decided(
            ProposalSentBack(
                island=self.setup.island,
                candidate=need.candidate,
                round=need.round,
                reason=error,
                full=full,
                usage=usage or Usage(),
            )
        )

    def begin_round(self, moves: Sequence[Move] = ()) -> list[Event]:
        """Start the round after applying the moves that touch this island, in order.

        A move that has become void since it was checked (nothing left to take, an old curriculum,
        an unknown donor) is recorded as such, so that it waits no longer.
        """
        need = self.ask()
        if not isinstance(need, NeedRound):
            return self.settle()
        events = self.settle()
        island = self.setup.island
        for move in moves:
            if island not in (islands_touched(move) or (island,)):
                continue
            void = why_void(move, self.state, self.lineage)
            settled: Event = (
                MoveVoided(island=island, round=need.round, move=move, reason=void)
                if void
                else MoveApplied(island=island, round=need.round, move=move)
            )
            events.append(self._apply(settled))
        self._record.begun = True
        return [*events, *self._advance()]

    def consulted(self) -> list[Event]:
        """The orchestrator answered for this stalled island; its moves come with the round."""
        if isinstance(self.ask(), NeedConsultation):
            self._consulted = self.state.round
        return self.settle()

    def close(self, reason: str) -> list[Event]:
        """Start no further round; closing twice does nothing."""
        return self.settle() if self.state.closed else self._decided(closing(self._record, reason))

    # --- deciding -----------------------------------------------------------------------------

    def _apply(self, event: Event) -> Event:
        self._record.apply(event)
        if isinstance(event, CandidateProposed | RoundEnded | MoveApplied):
            self._parents = ()
        if isinstance(event, ProposalSentBack):
            self._tries += 1
            self._error = event.reason
            self._usage += event.usage
            self._sent_back += (event.full or event.reason,)
        if isinstance(event, CandidateProposed):
            self._error, self._tries, self._usage, self._sent_back = "", 0, Usage(), ()
        return event

    def _decided(self, *events: Event) -> list[Event]:
        return [*self.settle(), *(self._apply(event) for event in events), *self._advance()]

    def _advance(self) -> list[Event]:
        """Apply every event that now follows from the record, one after another."""
        events: list[Event] = []
        while (event := following(self._record)) is not None:
            events.append(self._apply(event))
        return events
