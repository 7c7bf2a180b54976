"""Every run of the model's text on record: exit code and output, with a bound on its time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from .workspace import seconds_left

RUN_SECONDS = 20.0
TIMED_OUT = 124


class Run(NamedTuple):
    """One run: its exit code, and the text that it printed to both streams."""

    code: int
    stdout: str
    stderr: str


runs: list[Run] = []
trial = [0]
"""How many tries of the task came before this one."""
watchers: list[Callable[[Run], None]] = []


def recorded_run(command: Any, **options: Any) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run`, recorded; a run that lasts too long is ended and counts as failed."""
    shown = not (options.pop("capture_output", False) or "stdout" in options)
    settings: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    settings |= {**options, "check": False}
    own = settings.get("timeout") or RUN_SECONDS
    settings["timeout"] = min(own, max(1.0, min(RUN_SECONDS, seconds_left() / 2)))
    try:
        done: subprocess.CompletedProcess[Any] = subprocess.run(command, **settings)  # noqa: PLW1510
    except subprocess.TimeoutExpired as late:
        message = f"stopped after {settings['timeout']:.0f} seconds"
        empty, words = ("", message) if settings.get("text") else (b"", message.encode())
        done = subprocess.CompletedProcess(late.cmd, TIMED_OUT, empty, words)
    run = Run(done.returncode, _text(done.stdout), _text(done.stderr))
    runs.append(run)
    if shown:
        sys.stdout.write(run.stdout)
        sys.stderr.write(run.stderr)
    for watch in list(watchers):
        watch(run)
    return done


def last_fault() -> list[str]:
    """The error of the last run that failed, in words; empty if the last run went well."""
    if not runs:
        return ["the reply held nothing that could be run"]
    if runs[-1].code == 0:
        return []
    lines = (runs[-1].stderr or runs[-1].stdout).strip().splitlines()
    return ["\n".join(lines[-4:])[-400:] or f"exit code {runs[-1].code}"]


def _text(output: Any) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def by_try(first: float, later: float) -> float:
    """A setting for the first try of the task, and another for the tries that follow it."""
    return later if trial[0] else first
