"""A container host: what one node does with attempts. Holds nothing that matters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from milo.core.attempt import AttemptKey
from milo.core.errors import ModelError, ReplayMiss
from milo.core.harness import Harness
from milo.core.ports import AttemptJob, AttemptResult, Exit
from milo.core.redaction import redactor
from milo.core.task import Task
from milo.core.tree import FileTree
from milo.runtime.parts import HostParts, Parts, PeerLost, Replay


@dataclass(frozen=True, kw_only=True, slots=True)
class HostInfo:
    """What a host says of itself once it is up: the pinned model, and its sandbox in words."""

    name: str
    model: str
    description: str


class Host:
    """Implements `HostPort` in its own process (or inline)."""

    def __init__(self, name: str, parts: Parts) -> None:
        self.name = name
        self._parts = parts
        self._replay: Replay | None = parts.replay()
        self._opened: HostParts | None = None
        self._work: set[asyncio.Task[Any]] = set()
        self._redactor = redactor(parts.secrets())

    async def start(self) -> HostInfo:
        """Open sandbox, gateway and model; raises `MiloError` where they can't be had."""
        if self._opened is None:
            try:
                self._opened = await self._parts.open_host(self.name)
            except ModelError as error:  # in the provider's words, which may hold a key
                raise ModelError(self._redactor.text(str(error))) from None
        return HostInfo(
            name=self.name, model=self._opened.model, description=self._opened.description
        )

    def _own(self) -> HostParts:
        if self._opened is None:
            raise PeerLost(f"host {self.name} is not open")
        return self._opened

    async def run(self, key: AttemptKey, harness: Harness, task: Task) -> AttemptResult:
        """One attempt; in a replay its timings are the recorded ones."""
        job = AttemptJob(key=key, harness=harness, task=task)
        with self._at_work():
            result = self._redactor.value(await self._own().runner.run(job))
        if self._replay is None or result.outcome.status.is_infrastructure:
            return result
        recorded = self._replay.outcome(key)
        if recorded is None:
            raise ReplayMiss(f"replay miss: attempt {key} is not in the recording")
        return replace(result, outcome=replace(result.outcome, timings=recorded.timings))

    async def smoke(self, harness: Harness) -> str:
        """ "" or the error of the smoke test."""
        with self._at_work():
            return self._redactor.text(await self._own().runner.smoke(harness))

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        """A command in a copy of a tree."""
        with self._at_work():
            return self._redactor.value(await self._own().shell(tree, command, timeout_s))

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._work.add(task)
        try:
            yield
        finally:
            self._work.discard(task)

    async def close(self) -> None:
        """Take no more work, cut what is under way, whose containers would outlive this process,
        then end servers and sandboxes."""
        opened, self._opened = self._opened, None
        for task in self._work:
            task.cancel()
        if self._work:
            await asyncio.wait(self._work)
        if opened is not None:
            await opened.close()
