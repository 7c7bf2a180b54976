"""What an island knows: the fold of its shard, foreign candidates learnt, other islands' seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Event,
    FrameFixed,
    ProposalSentBack,
    RoundEnded,
)
from milo.core.fitness import Evaluation, Fitness, TaskScore, fitness_on, missing_tasks
from milo.core.lineage import Lineage, Node
from milo.core.moves import Graft
from milo.core.topology import IslandState, Topology
from milo.search.needs import IslandSetup, NeedScores

MAX_ASKS = 3
"""Times an incomplete evaluation is asked for before the candidate is left as it is."""


class IslandRecord:
    """The state behind an island. `apply` is for its own events, `learn` for other shards'.

    `begun` says whether the round after the last finished one has started. Scores of other
    islands' seeds (visitors) are kept in memory only: they fix the cost scales and no more.
    """

    def __init__(self, setup: IslandSetup) -> None:
        self.setup = setup
        self.lineage = Lineage()
        self.topology = Topology()
        self.begun = False
        self._own: list[str] = []
        self._seeds = {seed.candidate: seed.harness for seed in setup.seeds}
        self._visitors: dict[str, dict[str, TaskScore]] = {}
        self._incomplete: Counter[tuple[str, str, int]] = Counter()
        self._rescored: set[tuple[str, str]] = set()
        self._deferred: list[Event] = []

    @property
    def state(self) -> IslandState:
        """The island as its shard tells it."""
        return self.topology[self.setup.island]

    def copy(self) -> IslandRecord:
        """As it stands now, to be gone on with apart."""
        twin = IslandRecord(self.setup)
        twin.lineage, twin.topology, twin.begun = (
            self.lineage.copy(),
            self.topology.copy(),
            self.begun,
        )
        twin._own = list(self._own)
        twin._visitors = {seed: dict(scores) for seed, scores in self._visitors.items()}
        twin._incomplete = Counter(self._incomplete)
        twin._rescored = set(self._rescored)
        twin._deferred = list(self._deferred)
        return twin

    # --- folding ------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Fold one of the island's own events in."""
        if isinstance(event, CandidateProposed):
            self._retry_deferred()
        if isinstance(event, CandidateScored) and event.candidate in self.lineage:
            before = self.lineage[event.candidate].evaluation(event.split)
            self._rescored.update((event.candidate, t) for t in event.scores if t in before)
        self.lineage.apply(event)
        self.topology.apply(event, self.lineage)
        match event:
            case RoundEnded():
                self.begun = False
            case CandidateProposed():
                self._own.append(event.candidate)
                self.begun = True
            case CandidateScored():
                self._count(event.candidate, event.split, event.missing)
                self.begun = True
            case FrameFixed() | ProposalSentBack():
                self.begun = True
            case _:
                pass

    def learn(self, events: Iterable[Event]) -> None:
        """Import other shards' candidates; what has an unknown candidate or parent waits."""
        self._deferred.extend(
            event
            for event in events
            if isinstance(event, CandidateProposed | CandidateScored | CandidateJudged)
            and event.island != self.setup.island
        )
        self._retry_deferred()

    def rescored(
        self, members: Sequence[str], history: Iterable[Event]
    ) -> Iterable[CandidateScored]:
        """Members' scores on current tasks that came after their verdicts, as own events."""
        latest: dict[str, dict[str, TaskScore]] = {member: {} for member in members}
        for event in history:
            if isinstance(event, CandidateScored) and event.split == "search":
                latest.get(event.candidate, {}).update(event.scores)
        for member in members:
            lacking = missing_tasks(self.lineage[member].evaluation("search"), self.state.search)
            scores = {task: latest[member][task] for task in lacking if task in latest[member]}
            if scores:
                yield CandidateScored(
                    island=self.setup.island, candidate=member, split="search", scores=scores
                )

    def visit(self, candidate: str, scores: Evaluation, missing: Sequence[str]) -> None:
        """Keep the search scores of another island's seed."""
        self._visitors.setdefault(candidate, {}).update(scores)
        self._count(candidate, "search", missing)

    def _retry_deferred(self) -> None:
        if self._deferred:
            self._deferred = [event for event in self._deferred if not self._learn(event)]

    def _learn(self, event: Event) -> bool:
        """Fold a foreign event in if all it names is known; False where it must wait.

        Re-scorings (search scores after the verdict, or of this island's own candidates) are left
        out: when they come depends on timing, and what an island knows must not.
        """
        match event:
            case CandidateProposed():
                if event.candidate in self.lineage:
                    return True
                if any(parent not in self.lineage for parent in event.parents):
                    return False
            case CandidateScored() | CandidateJudged():
                if event.candidate not in self.lineage:
                    return False
                if event.candidate in self._own or self._is_rescoring(event):
                    return True
        self.lineage.apply(event)
        return True

    def _is_rescoring(self, event: CandidateScored | CandidateJudged) -> bool:
        judged = self.lineage[event.candidate].verdict is not None
        return judged and isinstance(event, CandidateScored) and event.split == "search"

    def _count(self, candidate: str, split: str, missing: Sequence[str]) -> None:
        if missing:
            self._incomplete[candidate, split, self.state.epoch] += 1

    # --- reading ------------------------------------------------------------------------------

    def current(self) -> Node | None:
        """The island's candidate of the round under way, if it is proposed."""
        if not self._own:
            return None
        node = self.lineage[self._own[-1]]
        return node if node.round == self.state.round + 1 else None

    def latest(self) -> str:
        """The island's newest candidate; "" where it made none."""
        return self._own[-1] if self._own else ""

    def awaits_verdict(self, node: Node) -> bool:
        """Whether a child is scored on the whole search set and not yet judged."""
        evaluation = node.evaluation("search")
        return node.verdict is None and not missing_tasks(evaluation, self.state.search)

    def next_id(self, ahead: int = 0) -> str:
        """The id of the next proposal, or of one so many later; a root seed is number 0."""
        return f"{self.setup.island}.{len(self._own) + bool(self.state.source) + ahead}"

    def pending_graft(self) -> str:
        """The donor of a graft that took effect at the boundary before the next round; "" if none.

        While children are made ahead the topology still names it when later ones are conceived.
        """
        now = self.state.round + 1
        grafted = any(r == now and isinstance(move, Graft) for _, r, move in self.topology.moves)
        return self.state.pending_graft if grafted else ""

    def is_visitor(self, candidate: str) -> bool:
        """Whether it is another island's seed."""
        return candidate in self._seeds and candidate != self.state.root

    def search_scores(self, candidate: str) -> Evaluation:
        """The scores that the frame and admission go by."""
        if self.is_visitor(candidate):
            return self._visitors.get(candidate, {})
        return self.lineage[candidate].evaluation("search")

    def lacking(self, candidate: str, split: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """Tasks still to be asked for; none once the evaluation has been asked for enough."""
        if self.is_given_up(candidate, split):
            return ()
        if split == "search":
            return missing_tasks(self.search_scores(candidate), tasks)
        return missing_tasks(self.lineage[candidate].evaluation(split), tasks)

    def ask_scores(
        self, candidate: str, harness: str, split: str, tasks: Sequence[str]
    ) -> NeedScores:
        """Ask for what a candidate lacks on these tasks of a split."""
        return NeedScores(
            candidate=candidate,
            harness=harness,
            split=split,
            tasks=self.lacking(candidate, split, tasks),
            k=self.setup.k,
        )

    def was_rescored(self, candidate: str, task: str) -> bool:
        """Whether a task of a candidate was measured again after it had a score."""
        return (candidate, task) in self._rescored

    def is_given_up(self, candidate: str, split: str) -> bool:
        """Whether an incomplete evaluation has been asked for often enough."""
        return self._incomplete[candidate, split, self.state.epoch] >= MAX_ASKS

    def to_frame(self) -> Mapping[str, str]:
        """Candidates (with harness digests) to be scored before the frame is fixed."""
        state = self.state
        members = {m: self.lineage[m].harness for m in (state.root, *state.members)}
        return {**self._seeds, **members}

    def own_seed(self) -> str:
        """The seed at the foot of the island's root; the root itself unless speciated."""
        return self.lineage.path_from_seed(self.state.root)[0]

    def seed_fitness(self) -> list[Fitness]:
        """Every seed's fitness, over those search tasks that it has a valid attempt on."""
        found = [self.measured_fitness(seed) for seed in self._seeds]
        return [fitness for fitness in found if fitness is not None]

    def measured_fitness(self, candidate: str) -> Fitness | None:
        """Search fitness over the current tasks it has a valid attempt on; None without any."""
        scores = self.search_scores(candidate)
        tasks = [task for task in self.state.search if task in scores]
        return fitness_on(scores, tasks) if tasks else None

    def scored_members(self) -> tuple[str, ...]:
        """Members measured on the whole current search set."""
        state = self.state
        return tuple(
            m
            for m in state.members
            if not missing_tasks(self.lineage[m].evaluation("search"), state.search)
        )

    def validation_accuracy(self, candidate: str) -> float | None:
        """Accuracy on the validation split, or None where incomplete."""
        fitness = self.lineage[candidate].fitness("validation", self.setup.validation)
        return fitness.accuracy if fitness else None

    def relatives(self) -> Iterable[Node]:
        """Candidates the island made, its members, and the ancestors of both."""
        frontier = [*self._own, *self.state.members]
        seen = set(frontier)
        while frontier:
            node = self.lineage[frontier.pop(0)]
            yield node
            fresh = [parent for parent in node.parents if parent not in seen]
            seen.update(fresh)
            frontier.extend(fresh)
