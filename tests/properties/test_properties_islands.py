"""Random sequences of moves, retries, kills and restores over islands that share one journal."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from milo.core.errors import MoveRefused
from milo.core.events import (
    CandidateJudged,
    Change,
    Consulted,
    Event,
    MoveApplied,
    Record,
)
from milo.core.fitness import TaskScore
from milo.core.moves import (
    Consultation,
    Curriculum,
    Diagnosis,
    Graft,
    Move,
    Reassign,
    Speciate,
)
from milo.core.plan import AdmissionPlan, StrategyPlan
from milo.core.population import Population
from milo.core.ports import PopulationView
from milo.core.topology import best_member, moved_members
from milo.search.curriculum import next_epoch
from milo.search.island import (
    Closed,
    Island,
    IslandSetup,
    NeedChild,
    NeedConsultation,
    NeedRound,
    NeedScores,
    SeedRef,
)
from milo.search.referee import check_move, next_island

SEARCH = tuple(f"s{i}" for i in range(6))
SPLIT = (*SEARCH, "s6", "s7")
STRATEGY = StrategyPlan(admission=AdmissionPlan(alpha=1.0), patience=2, mutation_tries=2)
SEEDS = tuple(SeedRef(candidate=f"i{i}.0", harness=f"seed {i}") for i in (1, 2))


def fake_score(harness: str, task: str) -> TaskScore:
    bits = zlib.crc32(f"{harness}/{task}".encode())
    wins = bits % 4
    return TaskScore(
        n=3, reward=wins / 3, resolved=wins, tokens=50.0 + bits % 97, latency_s=1 + bits % 7
    )


def setup(name: str) -> IslandSetup:
    return IslandSetup(
        island=name, strategy=STRATEGY, k=3, validation=("v0", "v1", "v2"), seeds=SEEDS, run_seed=3
    )


class IslandsMachine(RuleBasedStateMachine):
    """Two islands to begin with; any number by speciation."""

    def __init__(self) -> None:
        super().__init__()
        self.population = Population()
        self.journal: list[tuple[str, Event]] = []
        self.islands: dict[str, Island] = {}

    @initialize()
    def found(self) -> None:
        for seed in SEEDS:
            name = seed.candidate.split(".")[0]
            self.islands[name], events = Island.found(setup(name), "a", seed, SEARCH)
            self.write(name, events)
        for name in list(self.islands):
            for _ in range(30):
                self.step(name)

    # --- the shell --------------------------------------------------------------------------------

    def write(self, shard: str, events: Iterable[Event]) -> None:
        for event in events:
            self.journal.append((shard, event))
            self.population.apply(event)

    def step(self, name: str, *, lose: bool = False, send_back: bool = False) -> None:
        island = self.islands[name]
        need = island.ask()
        assert island.ask() == need
        match need:
            case NeedScores():
                scores = {t: fake_score(need.harness, t) for t in need.tasks[lose:]}
                self.write(name, island.scored(need.candidate, need.split, scores))
            case NeedChild() if send_back:
                self.write(name, island.sent_back("broken"))
            case NeedChild():
                digest = f"{need.candidate} of {need.parents}"
                self.write(name, island.proposed(digest, Change(title="edit"), 5))
            case NeedConsultation():
                self.write(name, island.consulted())
            case NeedRound():
                self.begin(name)
            case Closed():
                pass

    def begin(self, name: str) -> None:
        moves = self.population.pending_moves(name)
        for move in moves:
            if isinstance(move, Graft):
                self.islands[name].learn(self.history([move.donor_candidate]))
        for event in self.islands[name].begin_round(moves):
            speciate = isinstance(event, MoveApplied) and isinstance(event.move, Speciate)
            if speciate:
                self.speciate(event.move, event)
            else:
                self.write(name, [event])

    def speciate(self, move: Speciate, event: Event) -> None:
        source = self.population.topology[move.island]
        members = moved_members(source, move.root, self.population.lineage)
        self.write(move.island, [event])
        self.islands[move.new_island], events = Island.found_speciated(
            setup(move.new_island), move, source, members, "niche", self.history(members)
        )
        self.write(move.new_island, events)

    def history(self, candidates: Iterable[str]) -> list[Event]:
        wanted = set(self.population.history_of(candidates))
        return [e for _, e in self.journal if getattr(e, "candidate", "") in wanted]

    def order(self, move: Move) -> None:
        """Put a move on record if the referee allows it."""
        view = PopulationView(
            topology=self.population.topology,
            lineage=self.population.lineage,
            pool=("a", "b", "c"),
            search_split=SPLIT,
            attempts_left=None,
            k=3,
            patience=2,
            past=tuple(c.consultation for c in self.population.consultations),
        )
        island = next(iter(self.islands)) if isinstance(move, Curriculum) else move.island
        try:
            check_move(move, view, island)
        except MoveRefused:
            return
        answer = Consultation(
            island=island, round=0, diagnosis=Diagnosis.HEALTHY, words="", moves=(move,)
        )
        self.write("orchestrator", [Consulted(consultation=answer)])

    def pick(self, number: int) -> str:
        return list(self.islands)[number % len(self.islands)]

    # --- what may happen --------------------------------------------------------------------------

    @rule(number=st.integers(0, 5), steps=st.integers(1, 25))
    def advance(self, number: int, steps: int) -> None:
        for _ in range(steps):
            self.step(self.pick(number))

    @rule(number=st.integers(0, 5))
    def an_attempt_is_lost(self, number: int) -> None:
        self.step(self.pick(number), lose=True)

    @rule(number=st.integers(0, 5))
    def a_child_is_sent_back(self, number: int) -> None:
        self.step(self.pick(number), send_back=True)

    @rule(number=st.integers(0, 5))
    def the_actor_is_killed_and_restored(self, number: int) -> None:
        name = self.pick(number)
        own = [e for shard, e in self.journal if shard == name]
        foreign = [e for shard, e in self.journal if shard not in (name, "orchestrator")]
        self.islands[name] = Island.restore(setup(name), own, foreign)
        assert self.islands[name].settle() == []

    @rule(number=st.integers(0, 5), candidate=st.integers(0, 30))
    def a_result_is_told_again(self, number: int, candidate: int) -> None:
        """Work is executed at least once and recorded exactly once."""
        island = self.islands[self.pick(number)]
        nodes = list(self.population.lineage)
        node = nodes[candidate % len(nodes)]
        need = island.ask()
        if isinstance(need, NeedScores) and need.candidate == node.candidate:
            return
        assert island.scored(node.candidate, "search", {"s0": fake_score("x", "s0")}) == []

    @rule(number=st.integers(0, 5), mutator=st.sampled_from("abc"))
    def reassign(self, number: int, mutator: str) -> None:
        self.order(Reassign(island=self.pick(number), mutator=mutator))

    @rule(number=st.integers(0, 5), other=st.integers(0, 5))
    def graft(self, number: int, other: int) -> None:
        donor = self.population.topology[self.pick(other)]
        if donor.members:
            best = best_member(donor, self.population.lineage)
            self.order(Graft(island=self.pick(number), donor=donor.island, donor_candidate=best))

    @precondition(lambda self: len(self.islands) < 6)
    @rule(number=st.integers(0, 5), member=st.integers(0, 10))
    def speciate_somewhere(self, number: int, member: int) -> None:
        state = self.population.topology[self.pick(number)]
        if state.members:
            root = state.members[member % len(state.members)]
            new = next_island_of(self.population)
            self.order(Speciate(island=state.island, root=root, mutator="c", new_island=new))

    @rule(tasks=st.sets(st.sampled_from(SPLIT), min_size=1))
    def curriculum(self, tasks: set[str]) -> None:
        view_epoch = next_epoch_of(self.population)
        self.order(Curriculum(tasks=tuple(sorted(tasks)), epoch=view_epoch))

    @rule(number=st.integers(0, 5))
    def close(self, number: int) -> None:
        if number == 5 and len(self.islands) > 1:
            name = self.pick(number)
            self.write(name, self.islands[name].close("spent"))

    # --- what must hold ---------------------------------------------------------------------------

    @invariant()
    def every_parent_resolves_and_children_stand_where_they_were_declared(self) -> None:
        for node in self.population.lineage:
            assert all(parent in self.population.lineage for parent in node.parents)
            assert node.candidate.startswith(f"{node.island}.")
        for state in self.population.topology.islands.values():
            assert len(set(state.members)) == len(state.members)
            for member in state.members:
                assert self.population.lineage[member].verdict is not None
                assert self.population.lineage[member].verdict.is_member

    @invariant()
    def nobody_belongs_to_two_islands_and_nobody_is_judged_twice(self) -> None:
        members = [m for s in self.population.topology.islands.values() for m in s.members]
        assert len(set(members)) == len(members)
        judged = [e.candidate for _, e in self.journal if isinstance(e, CandidateJudged)]
        assert len(set(judged)) == len(judged)

    @invariant()
    def each_island_sees_itself_as_the_population_does(self) -> None:
        for name, island in self.islands.items():
            assert island.state == self.population.topology[name]
            for node in self.population.lineage.of_island(name):
                assert node.verdict == island.lineage[node.candidate].verdict

    def teardown(self) -> None:
        """The journal folds to the same state, and every shard restores to its live island."""
        records = [
            Record(seq=i, time=0.0, shard=shard, epoch=1, event=event)
            for i, (shard, event) in enumerate(self.journal)
        ]
        folded = Population.of(records)
        assert folded.topology.islands == self.population.topology.islands
        for name, island in self.islands.items():
            own = [e for shard, e in self.journal if shard == name]
            foreign = [e for shard, e in self.journal if shard not in (name, "orchestrator")]
            restored = Island.restore(setup(name), own, foreign)
            assert restored.state == island.state
            assert restored.known_digests() == island.known_digests()
            for node in island.lineage.of_island(name):
                assert restored.lineage[node.candidate] == node
            for member in island.state.members:
                ours, theirs = island.lineage[member], restored.lineage[member]
                assert ours.evaluation("search") == theirs.evaluation("search")


def next_island_of(population: Population) -> str:
    return next_island(bare_view(population))


def next_epoch_of(population: Population) -> int:
    return next_epoch(bare_view(population))


def bare_view(population: Population) -> PopulationView:
    return PopulationView(
        topology=population.topology,
        lineage=population.lineage,
        pool=(),
        search_split=SPLIT,
        attempts_left=None,
        k=3,
        patience=2,
        past=tuple(c.consultation for c in population.consultations),
    )


TestIslands = IslandsMachine.TestCase
TestIslands.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
