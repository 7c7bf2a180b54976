"""Package registries by their hosts: what mutators may reach beside their model, if allowed."""

from __future__ import annotations

from collections.abc import Sequence

from milo.core.errors import ConfigError
from milo.core.task import Network, Reach

KEY = "mutators.registries"
EXPECTED = "a registry's host, as `pip config list` or `npm config get registry` tells it"


def reach_of(registries: Sequence[str]) -> Reach:
    """What these registries, by their hosts, let a command reach; nothing for none.

    Raises `ConfigError` for a word that is no host.
    """
    for word in registries:
        if "://" in word or not any(mark in word for mark in ".:"):
            raise ConfigError(KEY, EXPECTED, repr(word))
    if not registries:
        return Reach()
    return Reach(network=Network.ALLOWLIST, hosts=tuple(dict.fromkeys(registries)))
