"""A node that has lost its host is asked for another until it has one, or says that it won't."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from milo.core.errors import ClusterError, MiloError, ModelError
from milo.core.plan import RunPlan
from milo.runtime import ray_stage
from milo.runtime.host import HostInfo
from milo.runtime.parts import Parts, PeerLost
from milo.runtime.placement import Node, Offer
from milo.runtime.ray_stage import RayStage
from milo.testing.landscape import landscape_suite

NODE = Node(node_id="abcdefghij", address="here", resources={"CPU": 2.0})


class Planned:
    """As much of `Parts` as a stage asks for before it opens."""

    plan = RunPlan()

    def suite(self) -> Any:
        """Some tasks."""
        return landscape_suite(2, ("a",))


class HostlessStage(RayStage):
    """A stage whose hosts are all dead; new ones come to what `starts` says, in order."""

    def __init__(self, starts: Sequence[str | MiloError]) -> None:
        super().__init__(cast(Parts, Planned()))
        self.hosts = (HostInfo(name="first", model="m", description=""),)
        self.starts = list(starts)
        self.seated: list[Offer] = []
        self._dispatcher = SimpleNamespace(hosts=SimpleNamespace(remote=lambda: None))

    async def _start_host(self, offer: Offer) -> HostInfo:
        start = self.starts.pop(0)
        if isinstance(start, MiloError):
            raise start
        return HostInfo(name=offer.node.name, model=start, description="")

    async def _seat(self, offer: Offer) -> None:
        self.seated.append(offer)


@pytest.fixture(autouse=True)
def one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of one node whose dispatcher knows no host."""

    async def no_hosts(reference: object) -> tuple[str, ...]:
        return ()

    monkeypatch.setattr(ray_stage, "REJOIN_WAITS_S", (0.0, 0.0))
    monkeypatch.setattr(ray_stage, "living_nodes", lambda: (NODE,))
    monkeypatch.setattr(ray_stage, "answer", no_hosts)


async def tended(stage: HostlessStage) -> HostlessStage:
    """After a look, and whatever it began has ended."""
    await stage.tend()
    await asyncio.gather(*stage._joining.values())
    return stage


async def test_a_host_that_is_refused_for_a_while_is_had_in_the_end() -> None:
    stage = await tended(HostlessStage([ModelError("busy"), "m"]))
    assert [offer.node for offer in stage.seated] == [NODE]
    await stage.tend()


@pytest.mark.parametrize(
    ("starts", "words"),
    [([ModelError("busy"), ModelError("still busy")], "still busy"), (["other"], "serves other")],
)
async def test_where_no_node_will_have_a_host_the_run_ends_with_the_reason(
    starts: Sequence[str | MiloError], words: str
) -> None:
    stage = await tended(HostlessStage(starts))
    with pytest.raises(ClusterError, match=words):
        await stage.tend()


async def test_a_host_that_died_while_it_joined_is_asked_for_at_the_next_look() -> None:
    stage = await tended(HostlessStage([PeerLost("gone"), "m"]))
    assert stage.seated == []
    await tended(stage)
    assert len(stage.seated) == 1
