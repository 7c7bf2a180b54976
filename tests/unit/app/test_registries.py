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


def test_registries_are_told_by_their_hosts() -> None:
    words = "mutators.registries=packages.example.org,mirror.example.org,mirror.example.org"
    reach = reach_of(compose(["budget.rounds=1", words], environ={}).agents.registries)
    assert reach.network is Network.ALLOWLIST
    assert reach.hosts == ("packages.example.org", "mirror.example.org")


@pytest.mark.parametrize("word", ["npm", "'https://packages.example.org/simple'"])
def test_a_word_that_is_no_host_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match=r"mutators\.registries.*npm config get registry"):
        compose(["budget.rounds=1", f"mutators.registries=[{word}]"], environ={})
