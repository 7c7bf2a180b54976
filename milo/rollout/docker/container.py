"""One container, started anew for every command, with the command as its whole life.

When a container's first process ends the kernel kills all others in it, so no command leaves a
process behind, and there is nothing to clean up inside. What the image's own file system has
become stays from one command to the next; /tmp of a sealed container and the network do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from milo.core.errors import MiloError
from milo.core.ports import Exit
from milo.rollout.docker.attached import Attached, close_socket
from milo.rollout.docker.ending import Ending
from milo.rollout.docker.engine import Engine, EngineError, NotThere
from milo.rollout.docker.leash import Leash

END_S = 30.0
LOOK_S = 0.02
STORAGE_CHECK_S = 1.0
KILLED = 128 + 9
STREAMS = {"stdin": 0, "stdout": 1, "stderr": 1, "stream": 1, "logs": 0}


class State(NamedTuple):
    """What the engine says of a container."""

    running: bool
    pid: int
    code: int
    out_of_memory: bool
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """One command as a container runs it.

    `doors` opens what the command may reach, given the first process's id, before it starts;
    `overfull` says whether more is stored than may be.
    """

    script: str
    timeout_s: float
    output_bytes: int
    doors: Callable[[int], AbstractAsyncContextManager[None]]
    overfull: Callable[[], Awaitable[bool]]


class Container:
    """A container that stands ready. One owner; not for concurrent commands.

    `folder` is the host's folder that it sees at `leash.PLACE`.
    """

    def __init__(self, engine: Engine, name: str, folder: Path) -> None:
        self.name = name
        self._engine = engine
        self._folder = folder

    async def run(self, order: Order) -> Exit:
        """Run to the end or to a limit; when this returns, no process of it is alive.

        Raises `MiloError` where the engine could not start it, or went away.
        """
        leash = Leash(self._folder, order.script)
        async with AsyncExitStack() as stack:
            stack.callback(leash.close)
            attached = await self._attach(order.output_bytes)
            stack.callback(attached.close)
            ending = await Ending.of(self._engine, self.name)
            stack.push_async_callback(ending.close)
            stack.push_async_callback(self._stop)
            stack.callback(leash.close)
            await self._engine.ask(self._engine.api.start, self.name)
            return await self._follow(order, leash, attached, ending)

    async def state(self) -> State:
        """How it is now; raises `EngineError`."""
        said = (await self._engine.ask(self._engine.api.inspect_container, self.name))["State"]
        return State(
            running=bool(said["Running"]),
            pid=int(said["Pid"]),
            code=int(said["ExitCode"]),
            out_of_memory=bool(said.get("OOMKilled")),
            error=str(said.get("Error") or ""),
        )

    async def remove(self) -> None:
        """Remove it, with volumes that its image declared; safe to call twice."""
        await remove_container(self._engine, self.name)

    async def _attach(self, output_bytes: int) -> Attached:
        socket = await self._engine.ask(
            self._engine.api.attach_socket, self.name, STREAMS, undo=close_socket
        )
        return Attached(socket, output_bytes)

    async def _follow(self, order: Order, leash: Leash, attached: Attached, ending: Ending) -> Exit:
        loop = asyncio.get_running_loop()
        pid = (await self.state()).pid
        async with order.doors(pid):
            begun = loop.time()
            leash.let_go()
            limit = await self._until_end(order, attached)
            seconds = loop.time() - begun
            leash.close()
        if not limit:
            await ending.wait(END_S)
        state = await self._stop()
        if not limit and state.out_of_memory and state.code != 0:
            limit = "memory"
        await attached.wait(END_S)
        return Exit(
            code=KILLED if limit else state.code,
            seconds=seconds,
            stdout=attached.stdout,
            stderr=attached.stderr or state.error,
            limit=limit,
        )

    async def _until_end(self, order: Order, attached: Attached) -> str:
        """Wait for the end of the output or the first limit: "", "time" or "storage"."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + order.timeout_s
        pause = STORAGE_CHECK_S
        while True:
            left = deadline - loop.time()
            if left <= 0:
                return "time"
            if await attached.wait(min(left, pause)):
                return ""
            begun = loop.time()
            if await order.overfull():
                return "storage"
            # A large file system is not counted all the time.
            pause = max(STORAGE_CHECK_S, 10 * (loop.time() - begun))

    async def _stop(self) -> State:
        """Kill it where it runs, and wait until it is dead; raises `MiloError` where it isn't."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + END_S
        killed = False
        while (state := await self.state()).running:
            if loop.time() > deadline:
                raise MiloError(f"container {self.name[:12]} could not be killed")
            if not killed:
                killed = await self._kill()
            await asyncio.sleep(LOOK_S)
        return state

    async def _kill(self) -> bool:
        try:
            await self._engine.ask(self._engine.api.kill, self.name, "SIGKILL")
        except NotThere:
            return True
        except EngineError:
            return False  # it has just ended, or will be asked again
        return True


async def remove_container(engine: Engine, name: str) -> bool:
    """Remove a container and its processes, and wait until it is gone; whether it was there."""
    try:
        await engine.ask(engine.api.remove_container, name, v=True, force=True)
    except NotThere:
        return False
    except EngineError as error:
        if "already in progress" not in str(error):
            raise
    return True
