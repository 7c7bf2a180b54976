"""A run of any size as a search leaves it: decided by real islands, kept by the real store.

Only what costs money is made up: attempts succeed at random, by a skill that drifts from parent to
child. Everything else is what a run does, so that the result can be looked at, and gone on with.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from milo.app.config import compose
from milo.app.launch import load_seeds
from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage
from milo.core.events import Change, Consulted, Event, RunStarted
from milo.core.evidence import Trace
from milo.core.fitness import TaskScore
from milo.core.harness import Harness
from milo.core.moves import Consultation, Diagnosis
from milo.core.plan import RunPlan
from milo.gateway.pins import model_label
from milo.runtime.sameness import digests
from milo.runtime.seeding import start_name
from milo.search.island import (
    Island,
    IslandSetup,
    NeedChild,
    NeedConsultation,
    NeedRound,
    NeedScores,
    SeedRef,
)
from milo.store import RunStore, encode_plan
from milo.suites.suite import load_suite

LATENCY_S = 2.5
FAULTS = 400
"""One attempt in so many is missing at first, and made again."""


class SystemClock:
    """Real time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()


def scale_plan(path: Path, *, tasks: int, k: int, url: str = "http://127.0.0.1:9/v1") -> RunPlan:
    """The plan of a run that can be gone on with against a model at `url`."""
    words = [
        f"suite.search={tasks}",
        "suite.validation=20",
        "suite.test=20",
        f"suite.k={k}",
        "model=openai/scripted",
        f"model.base_url={url}",
        "mutators=operators",
        "orchestrator=rules",
        "tracking=off",
        "cluster.slots=4",
        "budget.rounds=1000000",
    ]
    return replace(compose(words), run=str(path))


class ScaleRun:
    """Writes such a run into a directory, or goes on writing one. One owner."""

    def __init__(self, plan: RunPlan, path: Path) -> None:
        self._suite = load_suite(plan.suite)
        self._plan = plan
        self._digests = {name: task.digest for name, task in self._suite.tasks.items()}
        model = plan.model
        limits = {
            "calls": model.max_calls,
            "tokens": model.max_tokens,
            "output": model.max_output_tokens,
        }
        self._model = model_label(model.name, temperature=model.temperature, limits=limits)
        self._seeds = load_seeds(plan)
        if not (path / "run.json").exists():
            RunStore.create(path, path.name, encode_plan(plan), clock=SystemClock()).close()
        self.store = RunStore.open(path, clock=SystemClock())
        self._epochs: dict[str, int] = {}
        self._trace = self.store.put_trace(Trace(stdout="synthetic"))
        self.islands = self._restored()
        self.made = sum(len(island.lineage.of_island(i)) for i, island in self.islands.items())

    def grow(self, candidates: int) -> Iterator[int]:
        """Let the islands make children in turn, until there are so many; each new number."""
        while self.made < candidates:
            for name in self.islands:
                self._advance(name)
                yield self.made

    def close(self) -> None:
        """Give the run back."""
        self.store.close()

    def _write(self, shard: str, events: Sequence[Event]) -> None:
        if shard not in self._epochs:
            self._epochs[shard] = self.store.claim(shard)
        self.store.append(shard, self._epochs[shard], events)

    # --- the islands ----------------------------------------------------------------------------

    def _references(self) -> tuple[SeedRef, ...]:
        return tuple(
            SeedRef(candidate=start_name(number), harness=seed.harness.digest)
            for number, seed in enumerate(self._seeds, start=1)
        )

    def _setup(self, island: str) -> IslandSetup:
        return IslandSetup(
            island=island,
            strategy=self._plan.strategy,
            k=self._suite.k,
            validation=self._suite.splits.validation,
            seeds=self._references(),
            run_seed=self._plan.seed,
            rounds=self._plan.budget.rounds,
        )

    def _restored(self) -> dict[str, Island]:
        own: dict[str, list[Event]] = {}
        for record in self.store.records():
            own.setdefault(record.shard, []).append(record.event)
        if "run" not in own:
            return self._founded()
        names = [f"i{number}" for number in range(1, len(self._seeds) + 1)]
        islands = {name: Island.restore(self._setup(name), own[name]) for name in names}
        for name, island in islands.items():
            self._write(name, island.settle())
        return islands

    def _founded(self) -> dict[str, Island]:
        splits = self._suite.splits
        started = RunStarted(
            name=self.store.name,
            plan=encode_plan(self._plan),
            search=splits.search,
            validation=splits.validation,
            test=splits.test,
            model=self._model,
            seeds=tuple(seed.name for seed in self._seeds),
            tasks=digests(self._suite),
        )
        islands = {}
        for number, reference in enumerate(self._references()):
            name = f"i{number + 1}"
            seed = self._seeds[number].harness
            self.store.put_harness(reference.candidate, seed, (), "a seed")
            pool = self._plan.agents.mutators
            mutator = pool[number % len(pool)]
            island, events = Island.found(self._setup(name), mutator, reference, splits.search)
            if not number:
                self._write("run", [started])
            self._write(name, events)
            islands[name] = island
        return islands

    def _advance(self, name: str) -> None:
        """One island to the end of its round."""
        island = self.islands[name]
        before = island.state.round
        while island.state.round == before:
            need = island.ask()
            match need:
                case NeedScores():
                    self._score(island, need)
                case NeedRound():
                    self._write(name, island.begin_round(()))
                case NeedChild():
                    self._propose(island, need)
                case NeedConsultation(round=number):
                    self._consult(name, number)
                    self._write(name, island.consulted())
                case _:
                    raise AssertionError(f"{name} needs {need}")

    def _consult(self, name: str, number: int) -> None:
        answer = Consultation(
            island=name,
            round=number,
            diagnosis=Diagnosis.HEALTHY,
            words="no better validation accuracy for some rounds; no move is made",
        )
        self._write("orchestrator", [Consulted(consultation=answer, usage=Usage(calls=1))])

    def _propose(self, island: Island, need: NeedChild) -> None:
        tree = self.store.get_harness(need.parents[0]).tree
        text = tree.text("main.py").partition("\n# edit of ")[0].rstrip()
        edited = {"main.py": f"{text}\n# edit of {need.candidate}\n"}
        child = Harness.from_tree(tree.with_texts(edited), need.candidate)
        self.store.put_harness(need.candidate, child, need.parents, f"{need.candidate}: an edit")
        change = Change(
            title=f"edit {need.candidate}: check the answer before it is given",
            diagnosis="answers are cut off where the instruction asks for a file " * 3,
            hypothesis="fewer failures at the same cost",
        )
        usage = Usage(uncached_input=900, output=300, calls=1)
        self._write(island.setup.island, island.proposed(child.digest, change, 12, usage))
        self.made += 1

    # --- the attempts ---------------------------------------------------------------------------

    def _score(self, island: Island, need: NeedScores) -> None:
        rng = np.random.default_rng([*need.candidate.encode(), *need.split.encode()])
        rates = self._rates(island, need, rng)
        solved = rng.random((len(need.tasks), need.k)) < rates[:, None]
        tokens = (600 + 400 * rng.random(len(need.tasks))).astype(int)
        outcomes: list[Outcome] = []
        scores: dict[str, TaskScore] = {}
        for i, task in enumerate(need.tasks):
            outcomes += self._attempts(need, task, solved[i].tolist(), int(tokens[i]))
            scores[task] = TaskScore(
                n=need.k,
                reward=float(solved[i].mean()),
                resolved=int(solved[i].sum()),
                tokens=float(tokens[i]),
                latency_s=LATENCY_S,
            )
        self.store.append_attempts(self._faults(outcomes, rng))
        self.store.append_attempts(outcomes)
        self._write(island.setup.island, island.scored(need.candidate, need.split, scores))

    def _rates(self, island: Island, need: NeedScores, rng: np.random.Generator) -> np.ndarray:
        """Chance to solve each task: what the parent did, moved at random towards a half."""
        lineage = island.lineage
        parents = lineage[need.candidate].parents if need.candidate in lineage else ()
        known = lineage[parents[0]].evaluation(need.split) if parents else {}
        base = np.array([known[t].reward if t in known else 0.3 for t in need.tasks])
        drift = rng.normal(0.0, 0.15, len(need.tasks))
        return np.clip(0.8 * base + 0.2 * 0.35 + drift, 0.02, 0.98)

    def _attempts(
        self, need: NeedScores, task: str, solved: Sequence[bool], tokens: int
    ) -> Iterator[Outcome]:
        usage = Usage(uncached_input=tokens - 100, output=100, calls=1)
        timings = Timings(setup_s=0.02, agent_s=LATENCY_S, verifier_s=0.1)
        for index, won in enumerate(solved):
            yield Outcome(
                key=AttemptKey(
                    harness=need.harness,
                    task=task,
                    task_digest=self._digests[task],
                    model=self._model,
                    index=index,
                ),
                status=Status.COMPLETED,
                reward=float(won),
                resolved=won,
                usage=usage,
                timings=timings,
                trace=self._trace,
                detail="" if won else "the file is not there",
            )

    def _faults(self, outcomes: Sequence[Outcome], rng: np.random.Generator) -> list[Outcome]:
        """A few of the attempts as faults of the provider, before they were made again."""
        return [
            replace(outcome, status=Status.MODEL_ERROR, reward=None, resolved=False)
            for outcome in outcomes
            if rng.random() < 1 / FAULTS
        ]
