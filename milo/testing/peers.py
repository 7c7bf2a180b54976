"""A peer that is a coroutine: the talk of a driver with MILO, without sandbox, model or package."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from milo.core.attempt import Usage
from milo.core.packages import Packages
from milo.core.ports import Exit, SessionReport
from milo.core.station import AgentJob, AgentRun
from milo.core.tree import FileTree

Ask = Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]]
"""Puts a driver's question, and gives the answer."""


@dataclass
class FakeSession:
    """Implements `core.peering.LiveSession`; `call` stands for a model call of the driver's."""

    scope: str = ""
    spent: dict[str, Usage] = field(default_factory=dict)

    def report_in(self, scope: str) -> SessionReport:
        """What was called under a scope."""
        return SessionReport(usage=self.spent.get(scope, Usage()), exchanges=())

    def call(self, tokens: int) -> None:
        """A call of so many tokens, under the scope of this moment."""
        before = self.report_in(self.scope).usage
        self.spent[self.scope] = before + Usage(output=tokens, calls=1)


@dataclass
class FakeStation:
    """Implements `core.station.Station` for one driver; `code` is what it ends with."""

    driver: Callable[[Ask, AgentJob], Awaitable[None]]
    code: int = 0
    session: FakeSession = field(default_factory=FakeSession)
    job: AgentJob | None = None
    ended: int = 0

    def program(self, name: str) -> Path:
        """Nothing is installed."""
        return Path("/nowhere") / name

    def installed(self, packages: Packages) -> Path | None:
        """Nothing is."""
        return None

    async def run(self, job: AgentJob) -> AgentRun:
        """Run the driver to its end."""
        self.job = job
        if job.on_session is not None:
            job.on_session(self.session)
        try:
            await self.driver(job.doors["/peer/evaluate"], job)
        finally:
            self.ended += 1
        report = SessionReport(usage=Usage(calls=1), exchanges=())
        ended = Exit(code=self.code, seconds=1.0, stderr="it broke" if self.code else "")
        return AgentRun(exit=ended, workspace=FileTree(), logs=FileTree(), report=report)
