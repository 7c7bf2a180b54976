"""Package registries by name: what mutators may reach beside their model, if a run allows it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from milo.core.errors import ConfigError
from milo.core.task import Network, Reach

HOSTS: Mapping[str, tuple[str, ...]] = {
    "pypi": ("pypi.org", "files.pythonhosted.org"),
    "npm": ("registry.npmjs.org",),
}
KEY = "mutators.registries"


def reach_of(registries: Sequence[str]) -> Reach:
    """What these registries, by name or by their hosts, let a command reach; nothing for none.

    Raises `ConfigError` for a word that is neither a known name nor a host.
    """
    hosts: list[str] = []
    for word in registries:
        if word not in HOSTS and not any(mark in word for mark in ".:"):
            nearest = difflib.get_close_matches(word, HOSTS, n=1, cutoff=0.0)[0]
            expected = f"{', '.join(HOSTS)}, or a registry's host (nearest: {nearest})"
            raise ConfigError(KEY, expected, repr(word))
        hosts += HOSTS.get(word, (word,))
    if not hosts:
        return Reach()
    return Reach(network=Network.ALLOWLIST, hosts=tuple(dict.fromkeys(hosts)))
