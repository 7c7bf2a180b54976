"""Model servers that a run starts itself, and owns until it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class ModelServer(Protocol):
    """A model server that the run starts itself: embedded, or vLLM. Belongs to one owner."""

    @property
    def base_url(self) -> str:
        """The OpenAI-compatible root; meaningful while it is alive."""
        ...

    @property
    def api_key(self) -> str:
        """What it demands of its callers; "" where it demands nothing."""
        ...

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        ...

    async def start(self) -> None:
        """Start it, and wait until it is healthy; raises `ModelError` with the end of its log."""
        ...

    async def healthy(self) -> bool:
        """Whether it says that it is ready."""
        ...

    async def stop(self) -> None:
        """End it and all its processes; safe to call twice."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerDemand:
    """How many replicas of a model server a run wants, and what each takes of its node (by Ray's
    names: ``CPU``, ``GPU``, …). `name` is what errors call it."""

    name: str
    replicas: int
    resources: Mapping[str, float]
