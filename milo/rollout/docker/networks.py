"""Networks of tasks that may reach the public one: a bridge of its own for each environment."""

from __future__ import annotations

import secrets
from contextlib import suppress

from milo.rollout.docker.engine import Engine, EngineError, NotThere
from milo.rollout.docker.labels import is_abandoned, labels, run_filter
from milo.rollout.scratch import owner_label


class Networks:
    """Makes and removes them. Any number at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def make(self, run: str) -> str:
        """A new bridge that no other environment shares; its id."""
        api = self._engine.api
        name = f"milo-{owner_label(run)}.{secrets.token_hex(4)}"
        made = await self._engine.ask(
            api.create_network,
            name,
            driver="bridge",
            labels=labels(run),
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
