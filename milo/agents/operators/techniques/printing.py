"""Stray results: what was printed, or written to a wrong file, goes to the file that is missing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .runs import runs
from .workspace import missing_outputs, named_files, snapshot, task_text

LONGEST = 4000


def stray(before: dict[str, bytes], now: dict[str, bytes]) -> str:
    """The one file that was written although another was asked for; "" for none or several."""
    changed = [name for name, data in now.items() if before.get(name) != data]
    asked = [name for name in named_files(task_text()) if name not in before]
    strays = [name for name in changed if name not in asked]
    return strays[0] if len(changed) == len(strays) == 1 and before.keys() <= now.keys() else ""


def put(name: str, data: bytes) -> None:
    """Write a file, making its folder if need be."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(data)


def settle(before: dict[str, bytes]) -> None:
    """If exactly one named file is missing, give it the stray file's content, or what was printed.

    A file that was overwritten by mistake gets its old content back.
    """
    outputs = missing_outputs()
    clean = bool(runs) and runs[-1].code == 0
    if len(outputs) != 1 or not clean:
        return
    now = snapshot()
    name = stray(before, now)
    text = runs[-1].stdout
    if name:
        put(outputs[0], now[name])
        if name in before:
            put(name, before[name])
        else:
            Path(name).unlink()
    elif text.strip() and len(text) <= LONGEST:
        put(outputs[0], text.encode())


def saved_output(solve: Callable[..., Any]) -> Callable[..., Any]:
    """After `solve`, settle stray results."""

    @functools.wraps(solve)
    def saving(*args: Any, **options: Any) -> Any:
        before = snapshot()
        result = solve(*args, **options)
        settle(before)
        return result

    return saving
