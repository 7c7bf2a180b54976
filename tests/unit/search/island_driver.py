"""An in-memory world for island tests: fake outcomes, a shared fold of all events, no clock."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from milo.core.events import Change, Consulted, Event, MoveApplied, Record
from milo.core.fitness import TaskScore
from milo.core.moves import Consultation, Diagnosis, Graft, Move, Speciate
from milo.core.plan import AdmissionPlan, StrategyPlan
from milo.core.population import Population
from milo.core.ports import PopulationView
from milo.core.topology import moved_members
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

SEARCH = tuple(f"s{i:02}" for i in range(12))
VALIDATION = tuple(f"v{i:02}" for i in range(8))


def score(reward: float, n: int = 3, tokens: float = 100.0, latency: float = 1.0) -> TaskScore:
    return TaskScore(
        n=n, reward=reward, resolved=round(reward * n), tokens=tokens, latency_s=latency
    )


def evaluation_of(rewards: Sequence[float], prefix: str = "s", **costs: float) -> dict:
    return {f"{prefix}{i:02}": score(r, **costs) for i, r in enumerate(rewards)}


def outcome_of(harness: str, task: str, k: int) -> TaskScore:
    """The fixed outcome of a harness on a task; later candidates tend to be better."""
    rng = np.random.default_rng([zlib.crc32(harness.encode()), zlib.crc32(task.encode())])
    skill = 0.15 + 0.7 * (zlib.crc32(harness.encode()) % 997) / 997
    wins = int((rng.random(k) < skill).sum())
    return TaskScore(
        n=k,
        reward=wins / k,
        resolved=wins,
        tokens=float(800 + rng.integers(400)),
        latency_s=float(1 + rng.random()),
    )


def seed_refs(n: int = 3) -> tuple[SeedRef, ...]:
    return tuple(SeedRef(candidate=f"i{i}.0", harness=f"seed{i}") for i in range(1, n + 1))


def setup_of(island: str = "i1", **changes: object) -> IslandSetup:
    strategy = StrategyPlan(admission=AdmissionPlan(alpha=1.0), patience=2)
    fields: dict[str, object] = {
        "island": island,
        "strategy": strategy,
        "k": 3,
        "validation": VALIDATION,
        "seeds": seed_refs(),
        "run_seed": 7,
        "rounds": None,
    }
    return IslandSetup(**{**fields, **changes})  # type: ignore[arg-type]


class World:
    """Islands over one journal. `events` is what was written, in order, with its shard."""

    def __init__(
        self,
        *,
        rounds: int | None = 20,
        run_seed: int = 7,
        strategy: StrategyPlan | None = None,
        pool: tuple[str, ...] = ("a", "b"),
    ) -> None:
        extra = {} if strategy is None else {"strategy": strategy}
        self.setup_of = lambda name: setup_of(name, rounds=rounds, run_seed=run_seed, **extra)
        self.pool = pool
        self.population = Population()
        self.events: list[tuple[str, Event]] = []
        self.islands: dict[str, Island] = {}
        for i, seed in enumerate(seed_refs()):
            name = f"i{i + 1}"
            island, events = Island.found(self.setup_of(name), pool[i % len(pool)], seed, SEARCH)
            self.islands[name] = island
            self.write(name, events)

    def write(self, shard: str, events: Iterable[Event]) -> None:
        for event in events:
            self.events.append((shard, event))
            self.population.apply(event)

    def view(self) -> PopulationView:
        return PopulationView(
            topology=self.population.topology,
            lineage=self.population.lineage,
            pool=self.pool,
            search_split=SEARCH,
            attempts_left=None,
            k=3,
            patience=2,
            past=tuple(c.consultation for c in self.population.consultations),
        )

    def order(self, island: str, *moves: Move) -> None:
        """Put moves on record, as the orchestrator would."""
        answer = Consultation(
            island=island, round=0, diagnosis=Diagnosis.HEALTHY, words="ordered", moves=moves
        )
        self.write("orchestrator", [Consulted(consultation=answer)])

    def step(self, name: str) -> bool:
        """Answer one need; False once the island is closed."""
        island = self.islands[name]
        need = island.ask()
        match need:
            case Closed():
                return False
            case NeedScores():
                scores = {task: outcome_of(need.harness, task, need.k) for task in need.tasks}
                self.write(name, island.scored(need.candidate, need.split, scores))
            case NeedChild():
                digest = f"tree of {need.candidate} by {'+'.join(need.parents)}"
                self.write(name, island.proposed(digest, Change(title="edit"), 10))
            case NeedConsultation():
                self.write(name, island.consulted())
            case NeedRound():
                self.begin(name)
        return True

    def begin(self, name: str) -> None:
        moves = self.population.pending_moves(name)
        for move in moves:
            if isinstance(move, Graft):
                self.islands[name].learn(self.history([move.donor_candidate]))
        for event in self.islands[name].begin_round(moves):
            if isinstance(event, MoveApplied) and isinstance(event.move, Speciate):
                self.speciate(event)
            else:
                self.write(name, [event])

    def speciate(self, event: MoveApplied) -> None:
        """Found the new island from its source as it is just before the move."""
        move = event.move
        assert isinstance(move, Speciate)
        source = self.population.topology[event.island]
        members = moved_members(source, move.root, self.population.lineage)
        self.write(event.island, [event])
        island, events = Island.found_speciated(
            self.setup_of(move.new_island), move, source, members, "niche", self.history(members)
        )
        self.islands[move.new_island] = island
        self.write(move.new_island, events)

    def history(self, candidates: Iterable[str]) -> list[Event]:
        wanted = set(self.population.history_of(candidates))
        return [e for _, e in self.events if getattr(e, "candidate", "") in wanted]

    def run(self, *, until: Callable[[], bool] = lambda: False, seed: int = 0) -> None:
        """Advance islands in a random interleaving until all are closed, or `until` holds."""
        rng = random.Random(seed)
        going = list(self.islands)
        while going and not until():
            name = rng.choice(going)
            if not self.step(name):
                going.remove(name)
            going += [n for n in self.islands if n not in going and not self.closed(n)]

    def closed(self, name: str) -> bool:
        return isinstance(self.islands[name].ask(), Closed)

    def records(self) -> list[Record]:
        return [
            Record(seq=i, time=float(i), shard=shard, epoch=1, event=event)
            for i, (shard, event) in enumerate(self.events)
        ]

    def shard(self, name: str) -> list[Event]:
        return [event for shard, event in self.events if shard == name]

    def foreign(self, name: str) -> list[Event]:
        return [event for shard, event in self.events if shard not in (name, "orchestrator")]


PATIENT = StrategyPlan(admission=AdmissionPlan(alpha=1.0), patience=100)


def answer(island: Island, need: NeedScores, harness: str | None = None) -> list:
    scores = {t: outcome_of(harness or need.harness, t, need.k) for t in need.tasks}
    return island.scored(need.candidate, need.split, scores)


def founded(**changes: object) -> tuple[Island, list]:
    return Island.found(setup_of(**changes), "a", seed_refs()[0], SEARCH)


def after_round_0(**changes: object) -> tuple[Island, list]:
    island, events = founded(**changes)
    while isinstance(need := island.ask(), NeedScores):
        events += answer(island, need)
    return island, events


def in_round_1(**changes: object) -> tuple[Island, list]:
    island, events = after_round_0(**changes)
    return island, events + island.begin_round()
