"""What a recorded run answers when another run replays it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from milo.core.attempt import AttemptKey, Outcome
from milo.core.errors import ReplayMiss
from milo.core.events import (
    CandidateProposed,
    Consulted,
    IslandClosed,
    MoveApplied,
    MoveVoided,
    ProposalSentBack,
)
from milo.core.evidence import Exchange
from milo.core.moves import Consultation, Move
from milo.store.reader import RunReader


class Closing(NamedTuple):
    """The last round that an island finished, and why it stopped."""

    round: int
    reason: str


class ReplaySource:
    """Recorded answers by the question that led to them. Read only; one owner."""

    def __init__(self, path: Path) -> None:
        """Open a run, finished or not; raises `RunError` where the directory is none."""
        self._run = RunReader(path)
        self._moves: dict[tuple[str, int], list[Move]] = {}
        self._closed: dict[str, Closing] = {}
        self._begun: dict[str, int] = {}
        self._proposals: dict[str, int] = {}
        self._consultations: dict[tuple[str, int], Consultation] = {}
        self._scopes: dict[str, dict[str, str]] = {}
        for record in self._run.records():
            self._fold(record.event)

    @property
    def run(self) -> RunReader:
        """The recorded run itself."""
        return self._run

    def outcome(self, key: AttemptKey) -> Outcome | None:
        """How the attempt ended in the recording; None where it was never made."""
        return self._run.attempts.newest([key]).get(key)

    def exchanges(self, scope: str) -> tuple[Exchange, ...]:
        """The model calls of an attempt (scope = ``str(key)``) or of another session, in order.

        Raises `ReplayMiss` for a scope that the recording does not hold.
        """
        digest = self._run.sessions.get(scope) or self._attempt_traces(scope).get(scope)
        if not digest:
            raise ReplayMiss(f"the recording {self._run.path} has no session {scope}")
        return self._run.traces.get(digest).exchanges

    def moves(self, island: str, round_: int) -> tuple[Move, ...]:
        """The moves that took effect on the island before its round, or were void, in order."""
        return tuple(self._moves.get((island, round_), ()))

    def closed(self, island: str) -> Closing | None:
        """When and why the island stopped; None where it did not."""
        return self._closed.get(island)

    def begun(self, island: str) -> int:
        """The last round in which the island settled a move or proposed; -1 where it did not."""
        return self._begun.get(island, -1)

    def proposals(self, candidate: str) -> int:
        """How often a mutator proposed for the candidate, refused proposals counted too."""
        return self._proposals.get(candidate, 0)

    def consultation(self, island: str, round_: int) -> Consultation | None:
        """The orchestrator's answer for the island at its round, or None."""
        return self._consultations.get((island, round_))

    def close(self) -> None:
        """Release what reading holds."""
        self._run.close()

    def _fold(self, event: object) -> None:
        match event:
            case CandidateProposed():
                self._begun[event.island] = max(event.round, self.begun(event.island))
                self._proposals[event.candidate] = event.tries
            case ProposalSentBack():
                self._begun[event.island] = max(event.round, self.begun(event.island))
                self._proposals[event.candidate] = self.proposals(event.candidate) + 1
            case MoveApplied() | MoveVoided():
                self._begun[event.island] = max(event.round, self.begun(event.island))
                self._moves.setdefault((event.island, event.round), []).append(event.move)
            case IslandClosed():
                self._closed[event.island] = Closing(event.round, event.reason)
            case Consulted(consultation=answer):
                self._consultations[(answer.island, answer.round)] = answer
            case _:
                pass

    def _attempt_traces(self, scope: str) -> dict[str, str]:
        """Traces by scope of the harnesses whose digest begins as the scope does."""
        prefix = scope.partition("/")[0]
        if prefix not in self._scopes:
            self._scopes[prefix] = {
                str(outcome.key): outcome.trace
                for digest in self._run.attempts.harnesses(prefix)
                for outcome in self._run.attempts.of_harness(digest)
            }
        return self._scopes[prefix]
