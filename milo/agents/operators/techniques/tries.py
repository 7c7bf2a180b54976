"""Trying again: the task is attempted anew from the first state, with what went wrong."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .runs import last_fault, runs, trial
from .workspace import complaints, restore, seconds_left, snapshot, task_text

Solve = Callable[..., Any]
Judge = Callable[[dict[str, bytes]], list[str]]
LEAST_SECONDS = 15.0


class Try(NamedTuple):
    """One attempt: what `solve` returned, the folder it left, and its faults."""

    result: Any
    after: dict[str, bytes]
    faults: list[str]


def call_with_note(solve: Solve, args: tuple[Any, ...], options: Any, note: str) -> Any:
    """Call `solve` with a note added to the task's text, wherever it takes that from."""
    if not note:
        return solve(*args, **options)
    if args and isinstance(args[0], str):
        return solve(args[0] + note, *args[1:], **options)
    path = os.environ["MILO_TASK"]
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "task.md"
        noted.write_text(task_text() + note, encoding="utf-8")
        os.environ["MILO_TASK"] = str(noted)
        try:
            return solve(*args, **options)
        finally:
            os.environ["MILO_TASK"] = path


def _attempt(
    solve: Solve,
    args: tuple[Any, ...],
    options: Any,
    note: str,
    before: dict[str, bytes],
    judge: Judge,
) -> Try:
    runs.clear()
    trial[0] += bool(note)
    result = call_with_note(solve, args, options, note)
    return Try(result, snapshot(), judge(before))


def improved(solve: Solve, tries: int, judge: Judge) -> Solve:
    """`solve`, called again up to `tries` times while `judge` finds faults; the best is kept."""

    @functools.wraps(solve)
    def retried(*args: Any, **options: Any) -> Any:
        before = snapshot()
        best = _attempt(solve, args, options, "", before, judge)
        for _ in range(tries):
            if not best.faults or seconds_left() < LEAST_SECONDS:
                break
            note = "\n\nAn earlier try failed: " + "; ".join(best.faults[:3])
            restore(before)
            try:
                again = _attempt(solve, args, options, note, before, judge)
            except OSError:  # the model refuses further calls: what was achieved stays
                break
            best = min(best, again, key=lambda attempt: len(attempt.faults))
        restore(best.after)
        return best.result

    return retried


def retry_errors(tries: int) -> Callable[[Solve], Solve]:
    """Attempt the task again when the last run of the model's text ended with an error."""
    return lambda solve: improved(solve, tries, lambda before: last_fault())


def verified(tries: int) -> Callable[[Solve], Solve]:
    """Attempt the task again when named files are missing or broken, or nothing has changed."""
    return lambda solve: improved(solve, tries, complaints)
