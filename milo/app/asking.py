"""A run needs a limit: asked for on a terminal, required elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from milo.app.config import compose, require_budget
from milo.core.errors import ConfigError
from milo.core.plan import RunPlan

QUESTION = (
    "How long may this search take? quick (12 minutes), night (8 h), weekend (60 h),\n"
    "or a time such as 30m or 2h, or a limit such as attempts=500 or dollars=5 [quick]: "
)

UNITS = {"m": 60.0, "h": 1.0, "": 1.0}


def with_budget(words: Sequence[str], *, terminal: Callable[[str], str] | None) -> RunPlan:
    """The plan of the words, a limit added where there was none.

    `terminal` asks and gives the answer; without one a plan that has no limit raises
    `ConfigError`.
    """
    plan = compose(words)
    if plan.budget.is_bounded or terminal is None:
        require_budget(plan)
        return plan
    limit = ask(terminal)
    kept = [word for word in words if not word.startswith("budget=")]
    return compose([*kept, limit])


def ask(terminal: Callable[[str], str]) -> str:
    """Ask until the answer is a limit; the `key=value` word for it."""
    while True:
        try:
            answer = terminal(QUESTION)
        except EOFError:
            raise ConfigError("budget", "an answer", "the end of the input") from None
        try:
            word = as_word(answer)
            require_budget(compose([word]))
            return word
        except ConfigError as error:
            print(f"  {error}")


def as_word(answer: str) -> str:
    """The `key=value` word of an answer: a preset, a time with m or h, or KEY=NUMBER."""
    text = answer.strip().lower() or "quick"
    timed = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(m|h)?(?:in|ins|ours?|inutes?)?", text)
    if timed:
        return f"budget.hours={float(timed[1]) / UNITS[timed[2] or '']:.4g}"
    if "=" in text:
        return text if text.startswith("budget") else f"budget.{text}"
    return f"budget={text}"
