"""How a coding agent ended, from what was seen of it rather than from what it says.

An exit code of 0 and a line that says "success" prove nothing: programs report success beside an
error flag, and wait for ever on an endpoint that is dead. So limits and the gateway's report come
first, then the error that the program states, then its exit code.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from milo.agents.cli.description import Description
from milo.agents.cli.reading import error_said, words_said
from milo.core.station import AgentRun

NOT_FOUND = 127
TAIL_CHARS = 400


class Ending(StrEnum):
    """How the program ended."""

    FINISHED = "finished"
    OUT_OF_TIME = "ran out of time"
    CAPPED = "used up what it may spend"
    LIMITED = "went over a limit of its sandbox"
    NO_MODEL = "could not reach its model"
    SAID_ERROR = "reported an error"
    NOT_INSTALLED = "is not installed"
    CRASHED = "crashed"

    @property
    def is_whole(self) -> bool:
        """Whether the program came to an end of its own."""
        return self is Ending.FINISHED


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """An ending with the program's or the gateway's words for it."""

    ending: Ending
    words: str

    def __str__(self) -> str:
        return f"it {self.ending}" + (f": {self.words}" if self.words else "")


def ended(description: Description, run: AgentRun) -> Ended:
    """How a run ended."""
    limit, report = run.exit.limit, run.report
    said = error_said(description.errors, run.exit.stdout, run.logs)
    if limit == "time":
        return Ended(ending=Ending.OUT_OF_TIME, words=report.fault or f"{run.exit.seconds:.0f} s")
    if limit in ("dollars", "capped") or report.capped:
        return Ended(ending=Ending.CAPPED, words=report.capped or limit)
    if limit == "model" or (report.fault and (said or run.exit.code)):
        return Ended(ending=Ending.NO_MODEL, words=report.fault)
    if limit:
        return Ended(ending=Ending.LIMITED, words=limit)
    return _by_its_own(description, run, said)


def _by_its_own(description: Description, run: AgentRun, said: str) -> Ended:
    """How a run ended that no limit and no fault of the model ended."""
    if not run.report.usage.calls:
        missing = run.exit.code == NOT_FOUND
        ending = Ending.NOT_INSTALLED if missing else Ending.NO_MODEL
        return Ended(ending=ending, words=said or _tail(run))
    if said:
        return Ended(ending=Ending.SAID_ERROR, words=said)
    if run.exit.code != 0:
        return Ended(ending=Ending.CRASHED, words=f"exit code {run.exit.code}: {_tail(run)}")
    words = description.words
    last = words_said(words, run.exit.stdout, run.logs) if words else ""
    return Ended(ending=Ending.FINISHED, words=last)


def _tail(run: AgentRun) -> str:
    text = run.exit.stderr.strip() or run.exit.stdout.strip()
    return " ".join(text[-TAIL_CHARS:].split())
