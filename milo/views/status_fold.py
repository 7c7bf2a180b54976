"""What `status` must know of a journal's past, small enough to be kept beside it.

A `Folded` follows from the whole fold (`folded`), and is carried on over new records
(`StatusFold`) as long as these say all that is needed: after a move that regroups candidates, a
re-scoring of an old one, or a resume that changes the plan, only the whole fold tells, and the
carrying on says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from milo.core.attempt import Usage
from milo.core.budget import Budget
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Consulted,
    Event,
    FrameFixed,
    IslandFounded,
    MoveApplied,
    Record,
    RunEnded,
    RunResumed,
    RunStarted,
    Verdict,
    WinnerFrozen,
)
from milo.core.fitness import Fitness, TaskScore, fitness_on, missing_tasks
from milo.core.lineage import Lineage
from milo.core.moves import Curriculum, Speciate
from milo.core.population import Population
from milo.core.topology import IslandState, Topology
from milo.views.spending import Moments, MomentsFold, planned_budget


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandFold:
    """An island: its state, how many children were judged and joined, its best by search."""

    state: IslandState
    tried: int = 0
    admitted: int = 0
    best: str = ""
    best_fitness: Fitness | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenCandidate:
    """A candidate that is proposed and not judged, with its search scores so far."""

    candidate: str
    island: str
    is_child: bool
    scores: Mapping[str, TaskScore] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Folded:
    """A run's past in what `status` says of it; usage is that of mutators and orchestrator."""

    started: bool = False
    budget: Budget = field(default_factory=Budget)
    resumes: int = 0
    ended: RunEnded | None = None
    winner: WinnerFrozen | None = None
    searched: bool = False
    islands: tuple[IslandFold, ...] = ()
    open: tuple[OpenCandidate, ...] = ()
    mutator: Usage = field(default_factory=Usage)
    orchestrator: Usage = field(default_factory=Usage)
    moments: Moments = field(default_factory=Moments)


def folded(population: Population, moments: Moments) -> Folded:
    """The past as the whole fold tells it, in one pass over the lineage."""
    tried: dict[str, list[Verdict]] = {}
    open_: list[OpenCandidate] = []
    searched = False
    for node in population.lineage:
        scores = node.evaluation("search")
        is_child = bool(node.parents)
        searched = searched or (is_child and bool(scores))
        if node.verdict is None:
            open_.append(
                OpenCandidate(
                    candidate=node.candidate, island=node.island, is_child=is_child, scores=scores
                )
            )
        elif is_child:
            tried.setdefault(node.island, []).append(node.verdict)
    return Folded(
        started=population.started is not None,
        budget=planned_budget(population.plan),
        resumes=population.resumes,
        ended=population.ended,
        winner=population.winner,
        searched=searched,
        islands=tuple(
            _island(population.lineage, state, tried.get(name, []))
            for name, state in population.topology.islands.items()
        ),
        open=tuple(open_),
        mutator=sum((node.usage for node in population.lineage), Usage()),
        orchestrator=sum((c.usage for c in population.consultations), Usage()),
        moments=moments,
    )


def fold_of(records: Iterable[Record]) -> Folded:
    """The past as all records tell it."""
    population, moments = Population(), MomentsFold()
    for record in records:
        population.apply(record.event)
        moments.apply(record)
    return folded(population, moments.moments)


def _island(lineage: Lineage, state: IslandState, verdicts: list[Verdict]) -> IslandFold:
    scored = [
        (fitness, member)
        for member in state.members
        if (fitness := lineage[member].fitness("search", state.search)) is not None
    ]
    best = max(scored, key=lambda s: _rank(s[0]), default=None)
    return IslandFold(
        state=state,
        tried=len(verdicts),
        admitted=verdicts.count(Verdict.ADMITTED),
        best=best[1] if best else "",
        best_fitness=best[0] if best else None,
    )


def _rank(fitness: Fitness) -> tuple[float, float]:
    return fitness.accuracy, -fitness.tokens


class StatusFold:
    """Carries a `Folded` on over the records after it. One owner.

    `lost` says that the records held something that only the whole fold answers for.
    """

    def __init__(self, known: Folded) -> None:
        self.lost = False
        self._known = known
        self._islands = {island.state.island: island for island in known.islands}
        self._open = {one.candidate: one for one in known.open}
        self._topology = Topology()
        self._topology.islands.update({n: i.state for n, i in self._islands.items()})
        self._moments = MomentsFold(known.moments)

    @property
    def folded(self) -> Folded:
        """The past up to the last record."""
        return replace(
            self._known,
            islands=tuple(
                replace(self._islands.get(name, IslandFold(state=state)), state=state)
                for name, state in self._topology.islands.items()
            ),
            open=tuple(self._open.values()),
            moments=self._moments.moments,
        )

    def apply(self, record: Record) -> None:
        """Fold one record in; nothing any more once it is lost."""
        event = record.event
        self.lost = self.lost or self._is_beyond(event)
        if self.lost:
            return
        self._moments.apply(record)
        match event:
            case CandidateProposed():
                self._propose(event)
            case CandidateScored(split="search"):
                self._score(event)
            case CandidateJudged():
                self._judge(event)
            case _:
                self._of_run(event)
        # No move that needs the lineage comes this far.
        self._topology.apply(event, Lineage())

    def _is_beyond(self, event: Event) -> bool:
        match event:
            case RunResumed():
                return bool(event.overrides)
            case IslandFounded():
                return bool(event.source)
            case MoveApplied():
                return isinstance(event.move, Speciate | Curriculum)
            case FrameFixed():
                return event.search != self._topology[event.island].search
            case CandidateScored(split="search"):
                return event.candidate not in self._open
            case _:
                return False

    def _of_run(self, event: Event) -> None:
        known = self._known
        match event:
            case RunStarted():
                self._known = replace(known, started=True, budget=planned_budget(event.plan))
            case RunResumed():
                self._known = replace(known, resumes=known.resumes + 1, ended=None)
            case Consulted(usage=usage):
                self._known = replace(known, orchestrator=known.orchestrator + usage)
            case WinnerFrozen():
                self._known = replace(known, winner=event)
            case RunEnded():
                self._known = replace(known, ended=event)
            case _:
                pass

    def _propose(self, event: CandidateProposed) -> None:
        self._open[event.candidate] = OpenCandidate(
            candidate=event.candidate, island=event.island, is_child=bool(event.parents)
        )
        self._known = replace(self._known, mutator=self._known.mutator + event.usage)

    def _score(self, event: CandidateScored) -> None:
        one = self._open[event.candidate]
        self._open[event.candidate] = replace(one, scores={**one.scores, **event.scores})
        if one.is_child and event.scores:
            self._known = replace(self._known, searched=True)

    def _judge(self, event: CandidateJudged) -> None:
        one = self._open.pop(event.candidate, None)
        state = self._topology.islands.get(event.island)
        if one is None or state is None:
            return
        island = self._islands.get(event.island, IslandFold(state=state))
        if one.is_child:
            joined = event.verdict is Verdict.ADMITTED
            island = replace(island, tried=island.tried + 1, admitted=island.admitted + joined)
        if event.verdict.is_member and not missing_tasks(one.scores, state.search):
            fitness = fitness_on(one.scores, state.search) if state.search else None
            best = island.best_fitness
            if fitness is not None and (best is None or _rank(fitness) > _rank(best)):
                island = replace(island, best=event.candidate, best_fitness=fitness)
        self._islands[event.island] = island
