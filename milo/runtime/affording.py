"""What an island's next child may cost, and whether there is money and time left for it."""

from __future__ import annotations

from milo.core.budget import Spend
from milo.core.errors import BudgetExceeded
from milo.runtime.parts import Parts, Peers
from milo.search.island import Island


def promise_of(island: Island) -> str:
    """The name of the reservation that pays for the island's next child."""
    name = f"island {island.setup.island}"
    alone = island.setup.strategy.pipeline_depth == 1
    return name if alone else f"{name}, round {island.child_round}"


class Affording:
    """Reserves for one island's children; `attempts` are what a child costs at most."""

    def __init__(self, island: Island, parts: Parts, peers: Peers, attempts: int) -> None:
        self._island = island
        self._parts = parts
        self._peers = peers
        self._attempts = attempts

    def beside(self, island: Island, peers: Peers) -> Affording:
        """The same for a copy of the island."""
        return Affording(island, self._parts, peers, self._attempts)

    async def reserve(self) -> str:
        """Promise what the next child may cost; why it can't be afforded, or ""."""
        if await self._too_late():
            return "the time left for searching is too short for another child"
        return await self.reserve_again()

    async def reserve_again(self) -> str:
        """As `reserve`, for a child that was begun: it is late for no other."""
        try:
            await self._peers.recorder.reserve(promise_of(self._island), await self._price())
        except BudgetExceeded as refusal:
            return str(refusal)
        return ""

    async def _too_late(self) -> bool:
        """Whether a child could not be scored and validated, after all that waits, in time."""
        load = await self._peers.dispatcher.load()
        if load.deadline is None:
            return False
        attempts = load.queued + load.busy / 2 + self._attempts
        quickest_s = attempts * load.mean_attempt_s / max(1, load.slots)
        return self._parts.now() + quickest_s > load.deadline

    async def _price(self) -> Spend:
        """What a child may cost: per attempt as many tokens as the costliest member, and as many
        dollars as the attempts so far."""
        lineage, search = self._island.lineage, self._island.state.search
        scored = [lineage[m].fitness("search", search) for m in self._island.state.members]
        tokens = max((fitness.tokens for fitness in scored if fitness), default=0.0)
        spent = (await self._peers.recorder.spend())["target"]
        return Spend(
            attempts=self._attempts,
            tokens=int(tokens * self._attempts),
            dollars=spent.dollars / max(1, spent.attempts) * self._attempts,
        )
