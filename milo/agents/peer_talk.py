"""The talk with a peer's driver while it lives: its questions one after another, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import cast

from milo.core.attempt import Usage
from milo.core.peering import LiveSession
from milo.core.ports import SessionReport
from milo.core.station import AgentRun

Answer = Mapping[str, object]


class Question:
    """One candidate that the driver wants scored: files over the seed's, on which tasks."""

    def __init__(self, asked: Mapping[str, object]) -> None:
        files, tasks = asked.get("files"), asked.get("tasks")
        self.files = {str(k): str(v) for k, v in files.items()} if isinstance(files, dict) else {}
        self.tasks = tuple(map(str, tasks)) if isinstance(tasks, list) else ()
        self.note = str(asked.get("note") or "")
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def answer(self, answer: Answer) -> None:
        """Let the driver go on; nothing where it has given up waiting."""
        if not self._answer.done():
            self._answer.set_result(answer)

    async def answered(self) -> Answer:
        """Waits for the answer, which comes when the candidate is scored."""
        return await self._answer


class Talk:
    """Questions and end of one driver. One owner, one event loop."""

    def __init__(self) -> None:
        self._questions: asyncio.Queue[Question] = asyncio.Queue()
        self._running: asyncio.Task[AgentRun] | None = None
        self._session: LiveSession | None = None
        self._scope = ""

    def start(self, running: Coroutine[object, object, AgentRun]) -> None:
        """Let the driver run, until it ends or `close` ends it."""
        self._running = asyncio.ensure_future(running)

    def on_session(self, session: LiveSession) -> None:
        """The driver's model session is open."""
        self._session = session
        session.scope = self._scope

    def calls_in(self, scope: str) -> None:
        """The scope of the driver's model calls from now on."""
        self._scope = scope
        if self._session is not None:
            self._session.scope = scope

    def report_in(self, scope: str) -> SessionReport:
        """What came of the driver's calls under a scope."""
        if self._session is None:
            return SessionReport(usage=Usage(), exchanges=())
        return self._session.report_in(scope)

    async def ask(self, asked: Mapping[str, object]) -> Answer:
        """The door: a driver's question, held until it is answered."""
        question = Question(asked)
        await self._questions.put(question)
        return await question.answered()

    async def next(self) -> Question | AgentRun:
        """The next question, or how the driver ended; raises what its run raised.

        Waits for the driver, which is thinking.
        """
        assert self._running is not None, "the driver was started"
        asked = asyncio.ensure_future(self._questions.get())
        try:
            await asyncio.wait({asked, self._running}, return_when=asyncio.FIRST_COMPLETED)
            return asked.result() if asked.done() else self._running.result()
        finally:
            asked.cancel()

    async def close(self) -> None:
        """End the driver; safe to call twice."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(
                cast("asyncio.Task[object]", self._running), return_exceptions=True
            )
