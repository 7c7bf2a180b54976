"""Where coding agents run: a sandbox of their own on this node, with a metered gateway as network.

Each run has its own gateway, session and environment; all are gone when it returns. Money is
watched from outside: a session whose calls have cost more than it may is ended with its program,
so it overshoots by the calls then in flight.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path

from milo.app.leftovers import temporary_folder
from milo.app.packages import Shelf
from milo.core.attempt import Usage
from milo.core.calls import SPENT
from milo.core.errors import BudgetSpent, ReplayMiss
from milo.core.evidence import Exchange
from milo.core.packages import Packages
from milo.core.ports import Environment, EnvironmentSpec, Exit, Sandbox
from milo.core.station import Access, AgentJob, AgentRun
from milo.core.task import Reach, Setting
from milo.gateway.line import REPLAY_MISS, Line
from milo.gateway.proxy import Gateway
from milo.gateway.session import Session

PORT = 8765
ADDRESS = f"http://127.0.0.1:{PORT}"
LOOK_S = 0.25
KILLED = 137
ENDINGS = {503: "model", 429: "capped"}
"""What two answers of the gateway in a row mean: it has tried again itself, and a cap stays."""
IN_A_ROW = 2
CLOSE_S = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentStation:
    """Implements `core.station.Station`. Any number of runs at once on one event loop.

    `open_line` reaches the agents' model; `owner` labels what runs leave on this host; `programs`
    is the folder in which coding agents are installed, one folder each. `reach` is what they may
    reach beside their model.
    """

    sandbox: Sandbox
    open_line: Callable[[], Line]
    owner: str
    programs: Path
    reach: Reach = field(default_factory=Reach)

    def program(self, name: str) -> Path:
        """The folder that holds an installed agent."""
        return self.programs / name

    def installed(self, packages: Packages) -> Path | None:
        """The folder that holds a harness's packages, if they are installed."""
        return Shelf(self.programs).find(packages) if packages else None

    async def run(self, job: AgentJob) -> AgentRun:
        """Run to the end or to a limit; raises `MiloError` where nothing could be started,
        `ReplayMiss` where a replayed run lacks a call, `BudgetSpent` where the run can't pay."""
        scratch = temporary_folder(self.owner)
        line = self.open_line()
        gateway = Gateway(line, scratch / "gateway.sock", doors=job.doors)
        try:
            await gateway.start()
            return await self._with_gateway(job, gateway)
        finally:
            await gateway.stop()
            await line.upstream.close()
            shutil.rmtree(scratch, ignore_errors=True)

    async def _with_gateway(self, job: AgentJob, gateway: Gateway) -> AgentRun:
        spec = EnvironmentSpec(
            workspace=job.workspace,
            mounts=job.mounts,
            limits=replace(job.limits, network=self.reach.network),
            setting=Setting(hosts=self.reach.hosts),
            owner=self.owner,
            gateway_socket=gateway.socket,
            gateway_port=PORT,
            folders=job.folders,
            limits_addresses=False,
        )
        environment = await self.sandbox.open(spec)
        try:
            return await self._in(environment, job, gateway)
        finally:
            await environment.close()

    async def _in(self, environment: Environment, job: AgentJob, gateway: Gateway) -> AgentRun:
        name = gateway.model_name.rpartition("/")[2]
        access = Access(base_url=ADDRESS, token="", model=name)
        timeout_s = job.launch(access).timeout_s
        session = await gateway.open_session(job.scope, job.caps, timeout_s + CLOSE_S)
        if job.on_session is not None:
            job.on_session(session)
        try:
            command = job.launch(Access(base_url=ADDRESS, token=session.token, model=name))
            ended = await watched(environment.run(command), session, job.dollars)
        finally:
            report = await session.close()
        if report.fault.startswith(REPLAY_MISS):
            raise ReplayMiss(report.fault)
        if report.fault.startswith(SPENT):
            raise BudgetSpent(report.fault.removeprefix(SPENT))
        return AgentRun(
            exit=ended,
            workspace=await environment.workspace(),
            logs=await environment.logs(),
            report=report,
        )


async def watched(
    running: Coroutine[object, object, Exit], session: Session, dollars: float | None
) -> Exit:
    """Wait for a command, and end it early once its session is spent or its model is gone.

    Waits for the command's end, looking at the session every quarter of a second.
    """
    task = asyncio.ensure_future(running)
    loop = asyncio.get_running_loop()
    begun, reason = loop.time(), ""
    try:
        while not task.done() and not reason:
            await asyncio.wait({task}, timeout=LOOK_S)
            reason = over(session.recorded, dollars)
    finally:
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    if task.cancelled():
        return Exit(code=KILLED, seconds=loop.time() - begun, limit=reason)
    return task.result()


def over(recorded: tuple[Exchange, ...], dollars: float | None) -> str:
    """Why a session is to be ended: "dollars", "capped", "model", or "" where it may go on."""
    spent = sum((exchange.usage for exchange in recorded), Usage()).dollars
    if dollars is not None and spent is not None and spent > dollars:
        return "dollars"
    last = {exchange.status for exchange in recorded[-IN_A_ROW:]}
    return ENDINGS.get(last.pop(), "") if len(last) == 1 and len(recorded) >= IN_A_ROW else ""
