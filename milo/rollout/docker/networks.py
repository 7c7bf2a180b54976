"""Networks of tasks that may reach the public one: a bridge of its own for each environment."""

from __future__ import annotations

import ipaddress
import secrets
from contextlib import suppress

from milo.rollout.docker.engine import Engine, EngineError, NotThere
from milo.rollout.docker.labels import is_abandoned, labels, run_filter
from milo.rollout.scratch import owner_label

RANGE = ipaddress.ip_network("198.18.0.0/15")
"""For tests of the performance of networks (RFC 2544): no host has an address of it."""
PREFIX = 29
"""Six addresses each: the bridge's own, a container's, and some to spare."""
POOL_IS_EMPTY = "address pool"
TRIES = 8


class Networks:
    """Makes and removes them. Any number at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def make(self, run: str) -> str:
        """A new bridge that no other environment shares; its id.

        The engine's own pool of addresses holds some thirty networks; then small ones are made of
        a range that is set aside for benchmarks.
        """
        try:
            return await self._made(run, None)
        except EngineError as error:
            if POOL_IS_EMPTY not in str(error):
                raise
        for _ in range(TRIES - 1):
            with suppress(EngineError):  # somebody has the same addresses
                return await self._made(run, _subnet())
        return await self._made(run, _subnet())

    async def _made(self, run: str, subnet: str | None) -> str:
        from docker.types import IPAMConfig, IPAMPool

        api = self._engine.api
        made = await self._engine.ask(
            api.create_network,
            f"milo-{owner_label(run)}.{secrets.token_hex(4)}",
            driver="bridge",
            labels=labels(run),
            ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)]) if subnet else None,
            undo=lambda made: api.remove_network(made["Id"]),
        )
        return str(made["Id"])

    async def remove(self, network: str) -> bool:
        """Remove a network that no container uses any more; whether it was there."""
        try:
            await self._engine.ask(self._engine.api.remove_network, network)
        except NotThere:
            return False
        return True

    async def reap(self, run: str) -> int:
        """Remove what a dead owner left; how many there were."""
        api = self._engine.api
        count = 0
        for network in await self._engine.ask(api.networks, filters=run_filter(run)):
            if is_abandoned(network.get("Labels") or {}):
                with suppress(EngineError):  # another reaper may be at it
                    count += await self.remove(network["Id"])
        return count


def _subnet() -> str:
    """Any of the small networks that the range holds."""
    size = 1 << (32 - PREFIX)
    start = RANGE[secrets.randbelow(RANGE.num_addresses // size) * size]
    return f"{start}/{PREFIX}"
