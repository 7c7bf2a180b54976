"""A run needs a limit: asked for on a terminal, required elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from milo.app.asking import as_word, with_budget
from milo.core.errors import ConfigError

pytestmark = pytest.mark.usefixtures("no_keys")


def answers(*lines: str) -> Callable[[str], str]:
    queue = list(lines)

    def read(_: str) -> str:
        if not queue:
            raise EOFError
        return queue.pop(0)

    return read


def test_without_a_terminal_a_missing_budget_is_refused_with_an_example() -> None:
    with pytest.raises(ConfigError, match="budget=quick"):
        with_budget(["seed=1"], terminal=None)


def test_a_budget_given_is_not_asked_for() -> None:
    assert with_budget(["budget.attempts=3"], terminal=answers()).budget.attempts == 3


def test_a_terminal_is_asked_and_the_answer_is_laid_over_the_words() -> None:
    plan = with_budget(["seed=1", "budget=none"], terminal=answers("2h"))
    assert plan.budget.hours == 2.0 and plan.seed == 1


def test_an_answer_that_is_no_limit_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    plan = with_budget([], terminal=answers("forever", "none", "hours=-3", ""))
    assert plan.budget.hours == 0.195
    assert "forever" in capsys.readouterr().out


def test_the_end_of_the_input_is_no_answer() -> None:
    with pytest.raises(ConfigError, match="the end of the input"):
        with_budget([], terminal=answers())


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ("", "budget=quick"),
        ("Night", "budget=night"),
        ("30m", "budget.hours=0.5"),
        ("90 min", "budget.hours=1.5"),
        ("1.5", "budget.hours=1.5"),
        ("8 hours", "budget.hours=8"),
        ("attempts=500", "budget.attempts=500"),
        ("budget.dollars=5", "budget.dollars=5"),
    ],
)
def test_answers_may_be_short(answer: str, word: str) -> None:
    assert as_word(answer) == word
