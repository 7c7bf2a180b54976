"""One sentence per event: what the plain view prints and the live view leaves in the scrollback."""

from __future__ import annotations

from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Consulted,
    Event,
    FrameFixed,
    IslandClosed,
    IslandFounded,
    MoveApplied,
    MoveVoided,
    ProposalSentBack,
    RoundEnded,
    RunEnded,
    RunResumed,
    RunStarted,
    Verdict,
    WinnerFrozen,
)
from milo.core.fitness import Evaluation, mean_reward
from milo.views import text


def sentence(event: Event) -> str:
    """What happened, in one line of plain words."""
    match event:
        case RunStarted() | RunResumed() | RunEnded() | WinnerFrozen():
            return _of_run(event)
        case CandidateProposed() | ProposalSentBack() | CandidateScored() | CandidateJudged():
            return f"{event.island}: {_of_candidate(event)}"
        case Consulted():
            return consultation_words(event)
        case _:
            return f"{event.island}: {_of_island(event)}"


def is_notable(event: Event) -> bool:
    """Whether the event deserves a line of its own beside the live table."""
    if isinstance(event, CandidateJudged):
        return event.verdict is Verdict.ADMITTED
    if isinstance(event, IslandFounded):
        return bool(event.source)
    moves = MoveApplied | MoveVoided
    return isinstance(event, Consulted | moves | IslandClosed | WinnerFrozen | RunResumed)


def consultation_words(event: Consulted) -> str:
    """The orchestrator's diagnosis, its moves, what was refused, and its words.

    The words come last: they are the longest, and a narrow view cuts the end.
    """
    answer = event.consultation
    moves = "; ".join(text.move_words(move) for move in answer.moves) or "no move"
    refused = "".join(f" (refused {r.move.kind}: {r.reason})" for r in answer.refused)
    words = f": {answer.words}" if answer.words else ""
    return f"orchestrator on {answer.island}: {answer.diagnosis} → {moves}{refused}{words}"


def verdict_words(event: CandidateJudged) -> str:
    """A verdict with its gain or its reason."""
    if event.verdict is Verdict.ADMITTED:
        return f"admitted, gain {event.gain:.4f} with support {event.support:.2f}"
    return f"{event.verdict}: {event.reason}" if event.reason else str(event.verdict)


def _of_run(event: RunStarted | RunResumed | RunEnded | WinnerFrozen) -> str:
    match event:
        case RunStarted():
            sizes = f"{len(event.search)} search, {len(event.validation)} validation, "
            return f"run {event.name} started: {sizes}{len(event.test)} test tasks on {event.model}"
        case RunResumed():
            changed = f" with {', '.join(event.overrides)}" if event.overrides else ""
            return f"run resumed{changed}"
        case WinnerFrozen():
            return f"winner frozen: {event.candidate} of {event.island}: {event.rule}"
        case RunEnded():
            searched = "" if event.searched else "; nothing was searched"
            return f"run ended: {event.reason}{searched}"


def _of_candidate(
    event: CandidateProposed | ProposalSentBack | CandidateScored | CandidateJudged,
) -> str:
    match event:
        case ProposalSentBack():
            return f"a proposal for {event.candidate} was sent back: {event.full or event.reason}"
        case CandidateProposed():
            parents = " and ".join(event.parents)
            source = f" from {parents} by {event.mutator}" if parents else " (seed)"
            return f"{event.candidate} proposed{source}: {event.change.title}"
        case CandidateScored():
            missing = f", {len(event.missing)} tasks missing" if event.missing else ""
            return f"{event.candidate} scored on {event.split}: {_scores(event.scores)}{missing}"
        case CandidateJudged():
            return f"{event.candidate} {verdict_words(event)}"


def _scores(scores: Evaluation) -> str:
    if not scores:
        return "no task"
    tasks = text.plural(len(scores), "task")
    return f"{text.accuracy(mean_reward(scores, tuple(scores)))} % on {tasks}"


def _of_island(
    event: IslandFounded | FrameFixed | RoundEnded | MoveApplied | MoveVoided | IslandClosed,
) -> str:
    match event:
        case IslandFounded():
            source = f", out of {event.source}" if event.source else ""
            niche = f" for {event.niche}" if event.niche else ""
            return f"founded at {event.root} with the mutator {event.mutator}{source}{niche}"
        case FrameFixed():
            return f"scale fixed for search set {event.epoch} ({len(event.search)} tasks)"
        case RoundEnded():
            best = text.percent(event.best_validation)
            return f"round {event.round} ended: best validation {best} %, stall {event.stall}"
        case MoveApplied():
            return f"move applied before round {event.round}: {text.move_words(event.move)}"
        case MoveVoided():
            return f"move is void: {text.move_words(event.move)}: {event.reason}"
        case IslandClosed():
            return f"closed after round {event.round}: {event.reason}"
