"""How a run came to where it is, as curves: best so far against what was spent, and island by
island the rounds, the stalls, what the orchestrator said and what it moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from milo.core.events import (
    CandidateJudged,
    Consulted,
    IslandClosed,
    IslandFounded,
    MoveApplied,
    Record,
    RoundEnded,
    Verdict,
)
from milo.core.moves import Curriculum, Graft, Move, Speciate
from milo.views.points import PointFold


class Best(NamedTuple):
    """The best validation accuracy of all islands after so many attempts, tokens and seconds."""

    attempts: float
    tokens: float
    seconds: float
    best: float


class Stand(NamedTuple):
    """An island after a round: active seconds, round, stall count, best validation accuracy."""

    seconds: float
    round: int
    stall: int
    best: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Strip:
    """One island over time. `source` is the island that a speciated one was born of; `closed` is
    None while it goes on. `admitted` are the seconds at which a child joined."""

    island: str
    founded: float
    source: str
    stands: tuple[Stand, ...]
    admitted: tuple[float, ...]
    closed: float | None


class Step(NamedTuple):
    """A move that took effect: where, when, which island it came from ("" where from none)."""

    move: Move
    island: str
    seconds: float
    origin: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Intervention:
    """One answer of the orchestrator, in order of asking, and which of its moves took effect."""

    number: int
    seconds: float
    island: str
    round: int
    diagnosis: str
    moves: tuple[Move, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """One run. `baseline` is the best seed's validation accuracy, None where no seed has one."""

    run: str
    method: str
    seed: int
    patience: int
    best: tuple[Best, ...]
    baseline: float | None
    strips: tuple[Strip, ...]
    interventions: tuple[Intervention, ...]
    steps: tuple[Step, ...]
    seconds: float


class HistoryFold:
    """Folds records, in journal order from the first on. One owner."""

    def __init__(self) -> None:
        self._points = PointFold()
        self._best: list[Best] = []
        self._founded: dict[str, IslandFounded] = {}
        self._when: dict[str, float] = {}
        self._stands: dict[str, list[Stand]] = {}
        self._admitted: dict[str, list[float]] = {}
        self._closed: dict[str, float] = {}
        self._interventions: list[Intervention] = []
        self._steps: list[Step] = []

    @property
    def _seconds(self) -> float:
        return self._points.seconds

    def apply(self, record: Record) -> None:
        """Fold one record in."""
        point = self._points.apply(record)
        if point is not None and (self._best or point.values["population/best_validation"] > 0):
            self._note_best(point.values)
        match record.event:
            case IslandFounded() as event:
                self._founded[event.island] = event
                self._when[event.island] = self._seconds
            case RoundEnded() as event:
                stand = Stand(self._seconds, event.round, event.stall, event.best_validation)
                self._stands.setdefault(event.island, []).append(stand)
            case CandidateJudged() as event if event.verdict is Verdict.ADMITTED:
                self._admitted.setdefault(event.island, []).append(self._seconds)
            case IslandClosed() as event:
                self._closed[event.island] = self._seconds
            case Consulted() as event:
                self._consult(event)
            case MoveApplied() as event:
                step = Step(event.move, event.island, self._seconds, _origin(event.move))
                self._steps.append(step)
            case _:
                pass

    def _note_best(self, values: Mapping[str, float]) -> None:
        best = Best(
            attempts=values["spent/attempts"],
            tokens=values["spent/tokens"],
            seconds=self._seconds,
            best=max(values["population/best_validation"], self._best[-1].best)
            if self._best
            else values["population/best_validation"],
        )
        if self._best and self._best[-1][:2] == best[:2] and self._best[-1].best == best.best:
            return
        self._best.append(best)

    def _consult(self, event: Consulted) -> None:
        answer = event.consultation
        self._interventions.append(
            Intervention(
                number=len(self._interventions) + 1,
                seconds=self._seconds,
                island=answer.island,
                round=answer.round,
                diagnosis=str(answer.diagnosis),
                moves=answer.moves,
            )
        )

    def history(self, run: str, plan: Mapping[str, object]) -> History:
        """The history so far; `plan` is the run's own, as data."""
        strategy = plan.get("strategy")
        known: Mapping[str, object] = strategy if isinstance(strategy, Mapping) else {}
        return History(
            run=run,
            method=str(known.get("name", "")),
            seed=_whole(plan.get("seed")),
            patience=_whole(known.get("patience")) or 3,
            best=tuple(self._best),
            baseline=self._baseline(),
            strips=tuple(self._strip(island) for island in self._founded),
            interventions=tuple(self._interventions),
            steps=tuple(self._steps),
            seconds=self._seconds,
        )

    def _strip(self, island: str) -> Strip:
        return Strip(
            island=island,
            founded=self._when[island],
            source=self._founded[island].source,
            stands=tuple(self._stands.get(island, ())),
            admitted=tuple(self._admitted.get(island, ())),
            closed=self._closed.get(island),
        )

    def _baseline(self) -> float | None:
        population = self._points.population
        tasks = population.started.validation if population.started else ()
        seeds = [node for node in population.lineage if not node.parents]
        known = [fitness for seed in seeds if (fitness := seed.fitness("validation", tasks))]
        return max((fitness.accuracy for fitness in known), default=None)


def history_of(records: Iterable[Record], run: str, plan: Mapping[str, object]) -> History:
    """The history of a whole journal."""
    fold = HistoryFold()
    for record in records:
        fold.apply(record)
    return fold.history(run, plan)


def _origin(move: Move) -> str:
    match move:
        case Graft():
            return move.donor
        case Speciate():
            return move.new_island
        case _:
            return ""


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def letter(move: Move) -> str:
    """The letter by which a figure names a kind of move: R, G, S, C."""
    return "C" if isinstance(move, Curriculum) else move.kind[0].upper()
