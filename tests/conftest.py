"""Shared fixtures. No test reaches the network: anything but this machine itself is refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

LOOPBACK = ("127.", "localhost", "::1", "0.0.0.0")


class NetworkTouched(BaseException):
    """A test tried to leave this machine. No `except Exception` may hide it."""


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to connect anywhere but to this machine."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def guarded(original: Any) -> Any:
        def guard(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                host = str(address[0])
                if not host.startswith(LOOPBACK) and host not in _own_addresses():
                    raise NetworkTouched(f"a test tried to connect to {host}")
            return original(self, address)

        return guard

    monkeypatch.setattr(socket.socket, "connect", guarded(connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded(connect_ex))


def _own_addresses() -> frozenset[str]:
    import psutil

    return frozenset(a.address for nics in psutil.net_if_addrs().values() for a in nics)


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that gives every test the same numbers."""
    return np.random.default_rng(20260101)


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without any provider's key."""
    from milo.app.face import PROVIDER_KEYS

    for name in PROVIDER_KEYS:
        monkeypatch.delenv(name, raising=False)
