"""Which strategies may work ahead."""

from __future__ import annotations

import pytest

from milo.app.config import compose
from milo.core.errors import ConfigError


def test_an_island_may_work_ahead_where_no_child_needs_the_newest_verdict() -> None:
    assert compose(["strategy.pipeline_depth=4"]).strategy.pipeline_depth == 4
    assert compose(["strategy=darwinx"]).strategy.pipeline_depth == 1


@pytest.mark.parametrize(
    "words",
    [
        ["strategy=darwinx"],
        ["strategy.merge=true"],
        ["strategy=gepa", "mutators.model=openai/m"],
    ],
)
def test_strategies_that_need_the_newest_verdict_are_refused_a_pipeline(words: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"strategy\.pipeline_depth: expected 1 with .* found 2"):
        compose([*words, "strategy.pipeline_depth=2"])


def test_no_child_at_a_time_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"strategy\.pipeline_depth: expected a number of at"):
        compose(["strategy.pipeline_depth=0"])
