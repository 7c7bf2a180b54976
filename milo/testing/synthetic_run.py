"""A made-up run of any size: a journal that folds, with every kind of event and of move.

Nothing is searched: skills drift from parent to child at random, and verdicts follow from the
accuracy alone. It serves to try views and stores on ten thousand candidates within seconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    Consulted,
    Event,
    FrameFixed,
    IslandClosed,
    IslandFounded,
    MoveApplied,
    RoundEnded,
    RunEnded,
    RunStarted,
    Verdict,
    WinnerFrozen,
)
from milo.core.fitness import TaskScore
from milo.core.hypervolume import Frame
from milo.core.moves import Consultation, Curriculum, Diagnosis, Graft, Move, Reassign, Speciate
from milo.core.population import Population

Group = tuple[str, tuple[Event, ...]]
MODEL = "synthetic@0"
PATIENCE = 12
MOST_ISLANDS = 8
DIAGNOSES = {
    "reassign": Diagnosis.DRY_MUTATOR,
    "graft": Diagnosis.EXHAUSTED_LINEAGE,
    "speciate": Diagnosis.CROWDED_OUT_NICHE,
    "curriculum": Diagnosis.PLATEAU,
}


@dataclass(kw_only=True)
class SyntheticRun:
    """Groups of events for a `RunStore`, and the attempts behind them. One owner; run it once.

    `candidates` children are made over `islands` islands at first; `tasks` on each split, `k`
    attempts a task.
    """

    candidates: int
    rng: np.random.Generator
    islands: int = 4
    tasks: int = 24
    k: int = 1
    outcomes: list[Outcome] = field(default_factory=list)
    keep_outcomes: bool = True

    def __post_init__(self) -> None:
        """Name the tasks."""
        self.population = Population()
        self._skill: dict[str, NDArray[np.float64]] = {}
        self._best: dict[str, float] = {}
        self._born: dict[str, int] = {}
        self._splits = {
            split: tuple(f"{split[:1]}-task-{i:03d}" for i in range(self.tasks))
            for split in ("search", "validation", "test")
        }

    def groups(self) -> Iterator[Group]:
        """The whole run, group by group, each already folded into `population`."""
        yield self._group("run", self._start())
        for number in range(1, self.islands + 1):
            yield self._group(f"i{number}", self._found(number))
        made = 0
        while made < self.candidates:
            for island in tuple(self.population.topology.islands):
                if made >= self.candidates:
                    break
                yield from self._moves(island)
                yield self._group(island, self._child(island))
                made += 1
        for island in tuple(self.population.topology.islands):
            last = self.population.topology[island].round
            closed = IslandClosed(island=island, round=last, reason="attempts are spent")
            yield self._group(island, [closed])
        yield self._group("run", self._end())

    def _group(self, shard: str, events: Sequence[Event]) -> Group:
        for event in events:
            self.population.apply(event)
        return shard, tuple(events)

    def _start(self) -> list[Event]:
        plan = {"strategy": "synthetic", "suite": "synthetic"}
        search, validation, test = (self._splits[s] for s in ("search", "validation", "test"))
        return [
            RunStarted(
                name="synthetic",
                plan=plan,
                search=search,
                validation=validation,
                test=test,
                model=MODEL,
            )
        ]

    def _found(self, number: int) -> list[Event]:
        island, root = f"i{number}", f"i{number}.0"
        search = self._splits["search"]
        self._skill[root] = self.rng.uniform(0.0, 0.35, self.tasks)
        self._born[island] = 0
        self._best[island] = 0.0
        founded = IslandFounded(island=island, mutator="operators", root=root, search=search)
        frame = Frame(seed_accuracy=0.2, token_scale=400.0, latency_scale=3.0)
        judged = CandidateJudged(
            island=island, candidate=root, round=0, verdict=Verdict.SEED, reason="a seed"
        )
        return [
            founded,
            self._proposed(island, root, (), 0),
            self._scored(island, root, "search"),
            FrameFixed(island=island, epoch=0, search=search, frame=frame),
            judged,
            self._validated(island, root),
            RoundEnded(island=island, round=0, stall=0, best_validation=self._best[island]),
        ]

    def _child(self, island: str) -> list[Event]:
        state = self.population.topology[island]
        self._born[island] += 1
        child, round_ = f"{island}.{self._born[island]}", state.round + 1
        parent = state.members[-1 - int(self.rng.integers(min(4, len(state.members))))]
        donor = state.pending_graft
        parents = (parent, donor) if donor and donor != parent else (parent,)
        drift = self.rng.normal(0.0, 0.06, self.tasks)
        self._skill[child] = np.clip(self._skill[parent] + drift, 0.0, 0.95)
        events: list[Event] = [self._proposed(island, child, parents, round_)]
        if self.rng.random() < 0.08:
            return [*events, *self._invalid(island, child, round_)]
        events.append(self._scored(island, child, "search"))
        better = bool(self._skill[child].mean() > self._skill[parent].mean() + 0.012)
        verdict = Verdict.ADMITTED if better else Verdict.REJECTED
        events.append(
            CandidateJudged(
                island=island,
                candidate=child,
                round=round_,
                verdict=verdict,
                reason="hypervolume grows" if better else "no gain in 41.5% of 200 bootstraps",
                gain=float(self.rng.exponential(0.01)) if better else 0.0,
                support=float(self.rng.uniform(0.95, 1.0)) if better else 0.4,
            )
        )
        before = self._best[island]
        events += [self._validated(island, child)] if better else []
        return [*events, self._round_ended(island, round_, before)]

    def _invalid(self, island: str, child: str, round_: int) -> list[Event]:
        judged = CandidateJudged(
            island=island,
            candidate=child,
            round=round_,
            verdict=Verdict.INVALID,
            reason="its smoke test fails: exit 1",
        )
        return [judged, self._round_ended(island, round_, self._best[island])]

    def _round_ended(self, island: str, round_: int, before: float) -> RoundEnded:
        best = self._best[island]
        stall = 0 if best > before else self.population.topology[island].stall + 1
        return RoundEnded(island=island, round=round_, stall=stall, best_validation=best)

    def _proposed(
        self, island: str, candidate: str, parents: tuple[str, ...], round_: int
    ) -> CandidateProposed:
        return CandidateProposed(
            island=island,
            candidate=candidate,
            round=round_,
            parents=parents,
            harness=digest_of(candidate),
            mutator=self.population.topology[island].mutator if parents else "",
            change=Change(
                title=f"edit {candidate}: check the answer before it is given" if parents else "",
                diagnosis="answers are cut off",
                hypothesis="fewer failures",
            ),
            patch_lines=int(self.rng.integers(2, 90)),
            usage=Usage(uncached_input=900, output=int(self.rng.integers(50, 900)), calls=1),
        )

    def _validated(self, island: str, candidate: str) -> CandidateScored:
        scored = self._scored(island, candidate, "validation")
        mean = sum(s.reward for s in scored.scores.values()) / len(scored.scores)
        self._best[island] = max(self._best[island], mean)
        return scored

    def _scored(self, island: str, candidate: str, split: str) -> CandidateScored:
        tasks, n = self._splits[split], self.tasks
        solved = self.rng.random((n, self.k)) < self._skill[candidate][:, None]
        tokens = np.round(self.rng.lognormal(6.0, 0.3, n)) + len(candidate)
        seconds = self.rng.lognormal(1.0, 0.4, n)
        scores = {
            task: TaskScore(
                n=self.k,
                reward=float(solved[i].mean()),
                resolved=int(solved[i].sum()),
                tokens=float(tokens[i]),
                latency_s=float(seconds[i]),
            )
            for i, task in enumerate(tasks)
        }
        if self.keep_outcomes:
            for i, task in enumerate(tasks):
                self.outcomes += self._attempts(candidate, task, solved[i], scores[task])
        return CandidateScored(island=island, candidate=candidate, split=split, scores=scores)

    def _attempts(
        self, candidate: str, task: str, solved: NDArray[np.bool_], score: TaskScore
    ) -> Iterator[Outcome]:
        for index, won in enumerate(solved):
            key = AttemptKey(
                harness=digest_of(candidate), task=task, task_digest="d", model=MODEL, index=index
            )
            yield Outcome(
                key=key,
                status=Status.COMPLETED,
                reward=float(won),
                resolved=bool(won),
                usage=Usage(uncached_input=int(score.tokens) - 100, output=100, calls=1),
                timings=Timings(agent_s=score.latency_s),
            )

    def _moves(self, island: str) -> Iterator[Group]:
        """A consultation and its move, where the island has stalled."""
        state = self.population.topology[island]
        if state.stall < PATIENCE:
            return
        move = self._move(island)
        answer = Consultation(
            island=island,
            round=state.round,
            diagnosis=DIAGNOSES[move.kind],
            words=f"no better validation accuracy for {state.stall} rounds",
            moves=(move,),
        )
        yield self._group("orchestrator", [Consulted(consultation=answer, usage=Usage(calls=1))])
        applied = MoveApplied(island=island, round=state.round + 1, move=move)
        yield self._group(island, [applied])
        if isinstance(move, Speciate):
            yield self._group(move.new_island, self._speciated(move))
        if isinstance(move, Curriculum):
            frame = Frame(seed_accuracy=0.2, token_scale=400.0, latency_scale=3.0)
            fixed = FrameFixed(island=island, epoch=move.epoch, search=move.tasks, frame=frame)
            yield self._group(island, [fixed])

    def _move(self, island: str) -> Move:
        topology = self.population.topology
        others = [name for name in topology.islands if name != island]
        roll = self.rng.random()
        if roll < 0.5 and others:
            donor = others[int(self.rng.integers(len(others)))]
            best = topology[donor].members[-1]
            return Graft(island=island, donor=donor, donor_candidate=best)
        members = topology[island].members
        if roll < 0.65 and len(topology.islands) < MOST_ISLANDS and len(members) > 2:
            root = members[len(members) // 2]
            new = f"i{len(topology.islands) + 1}"
            return Speciate(island=island, root=root, mutator="operators-prompt", new_island=new)
        if roll < 0.72:
            tasks = self._splits["search"][:: 1 + int(self.rng.integers(1, 3))]
            return Curriculum(tasks=tasks, epoch=topology[island].epoch + 1)
        return Reassign(island=island, mutator=str(self.rng.choice(["operators", "single_call"])))

    def _speciated(self, move: Speciate) -> list[Event]:
        source = self.population.topology[move.island]
        best = self._best[move.island]
        self._born[move.new_island], self._best[move.new_island] = 0, best
        founded = IslandFounded(
            island=move.new_island,
            mutator=move.mutator,
            root=move.root,
            members=(move.root,),
            source=move.island,
            niche="tasks that its siblings fail",
            search=source.search,
            epoch=source.epoch,
            frame=source.frame,
        )
        return [
            founded,
            RoundEnded(island=move.new_island, round=source.round, stall=0, best_validation=best),
        ]

    def _end(self) -> list[Event]:
        lineage = self.population.lineage
        tasks = self._splits["validation"]
        ranked = [(f.accuracy, n) for n in lineage if (f := n.fitness("validation", tasks))]
        best = max(ranked, key=lambda pair: pair[0])[1]
        won = WinnerFrozen(
            candidate=best.candidate, island=best.island, rule="accuracy", front=(best.candidate,)
        )
        scored = self._scored(best.island, best.candidate, "test")
        return [won, scored, RunEnded(reason="attempts are spent", searched=True)]


def digest_of(candidate: str) -> str:
    """The content hash that a synthetic candidate claims."""
    return hashlib.sha256(candidate.encode()).hexdigest()
