"""The model that judges work where no program can: asked by verifiers, metered apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

JUDGE_FILE = "judge.json"
"""The file among a task's tests that says how a model judges it, instead of a test script."""


class JudgeModel(Protocol):
    """A model that judges. Any number of calls at once on one event loop."""

    async def __call__(self, scope: str, messages: Sequence[Mapping[str, object]]) -> str:
        """The reply's text; raises `ModelError` where there is none, `BudgetSpent` where the run
        can't pay for it."""
        ...
