"""However the pieces take their closing, none of them is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from milo.core.errors import DiskFull
from milo.core.plan import RunPlan
from milo.runtime import ray_stage
from milo.runtime.parts import Parts, PeerLost
from milo.runtime.ray_stage import RayStage
from milo.testing.landscape import landscape_suite


class Actor:
    """An actor that answers its closing in its own way."""

    def __init__(self, closes: Callable[[], Awaitable[None]]) -> None:
        self.close = self
        self.remote = closes


class Planned:
    """As much of `Parts` as a stage asks for before it opens."""

    plan = RunPlan()

    def suite(self) -> Any:
        """Some tasks."""
        return landscape_suite(2, ("a",))


def raising(error: Exception) -> Actor:
    async def closes() -> None:
        raise error

    return Actor(closes)


def silent() -> Actor:
    async def closes() -> None:
        await asyncio.sleep(3600)

    return Actor(closes)


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was killed, in order; "ray" for Ray itself."""
    ended: list[object] = []
    monkeypatch.setattr(ray_stage.ray, "kill", ended.append)
    monkeypatch.setattr(ray_stage.ray, "shutdown", lambda: ended.append("ray"))
    monkeypatch.setattr(ray_stage, "CLOSE_S", 0.05)
    return ended


def stage_of(*hosts: Actor) -> RayStage:
    stage = RayStage(cast(Parts, Planned()))
    stage._open = stage._owns_ray = True
    stage._host_actors = {f"h{number}": host for number, host in enumerate(hosts)}
    return stage


async def test_a_host_that_fails_to_close_keeps_nobody_else_alive(killed: list[object]) -> None:
    """What breaks without it: Ray and every actor stay when one recorder finds its disk full."""
    hosts = [raising(DiskFull("no room")), silent(), raising(PeerLost("gone"))]
    stage = stage_of(*hosts)
    with pytest.raises(DiskFull):
        await stage.close()
    assert killed == [*hosts, "ray"]
    await stage.close()
    assert killed == [*hosts, "ray"], "a second closing does nothing"


async def test_the_dead_and_the_slow_are_no_fault(killed: list[object]) -> None:
    hosts = [silent(), raising(PeerLost("gone"))]
    await stage_of(*hosts).close()
    assert killed == [*hosts, "ray"]
