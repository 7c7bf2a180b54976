"""Printed answers: what the last run printed goes to the one file that the task still lacks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .runs import runs
from .workspace import missing_outputs

LONGEST = 4000


def saved_output(solve: Callable[..., Any]) -> Callable[..., Any]:
    """After `solve`, save a clean run's output if exactly one named file is still missing."""

    @functools.wraps(solve)
    def saving(*args: Any, **options: Any) -> Any:
        result = solve(*args, **options)
        outputs = missing_outputs()
        text = runs[-1].stdout if runs and runs[-1].code == 0 else ""
        if len(outputs) == 1 and text.strip() and len(text) <= LONGEST:
            Path(outputs[0]).parent.mkdir(parents=True, exist_ok=True)
            Path(outputs[0]).write_text(text)
        return result

    return saving
