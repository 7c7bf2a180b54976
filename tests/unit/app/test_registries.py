"""Package registries that mutators may reach: none by default, and only what is named."""

from __future__ import annotations

import pytest

from milo.app.config import compose
from milo.app.registries import reach_of
from milo.core.errors import ConfigError
from milo.core.task import Network


def test_mutators_reach_nothing_unless_a_run_says_so() -> None:
    assert compose(["budget.rounds=1"], environ={}).agents.registries == ()
    assert reach_of(()).network is Network.NONE


def test_registries_are_told_by_name_or_by_host() -> None:
    plan = compose(["budget.rounds=1", "mutators.registries=pypi,mirror.example.org"], environ={})
    reach = reach_of(plan.agents.registries)
    assert reach.network is Network.ALLOWLIST
    assert reach.hosts == ("pypi.org", "files.pythonhosted.org", "mirror.example.org")


def test_a_word_that_names_no_registry_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"mutators\.registries.*nearest: npm"):
        compose(["budget.rounds=1", "mutators.registries=[npn]"], environ={})
