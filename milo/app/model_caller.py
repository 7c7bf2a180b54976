"""How mutators, the orchestrator and judges reach their own model: metered, each for its role."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from milo.core.attempt import Usage
from milo.core.calls import SPENT
from milo.core.errors import BudgetSpent, ModelRefused, ModelUnavailable, ReplayMiss
from milo.core.evidence import Exchange
from milo.core.ports import Caps
from milo.gateway.client import text_of
from milo.gateway.line import REPLAY_MISS, Line, Reply
from milo.gateway.session import Session
from milo.gateway.wire import error_message

SESSION_S = 3600.0


class SessionCaller:
    """Implements the runtime's `ModelCaller`: the calls of one scope form one session.

    The line is opened on the first call, so that whoever needs no model pays for none.
    """

    def __init__(self, open_line: Callable[[], Line]) -> None:
        self._open_line = open_line
        self._line: Line | None = None
        self._sessions: dict[str, Session] = {}

    async def __call__(
        self,
        scope: str,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] = (),
    ) -> tuple[str, Usage, tuple[Exchange, ...]]:
        """The reply's text, its usage, and its exchange; raises `ModelUnavailable` where the
        provider failed, `ModelRefused` where it refuses the request, `ReplayMiss`, or
        `BudgetSpent` where the run can't pay for it."""
        if self._line is None:
            self._line = self._open_line()
        session = self._sessions.get(scope)
        if session is None:
            session = Session(self._line, scope, Caps(), SESSION_S)
            self._sessions[scope] = session
        before = len(session.recorded)
        try:
            reply = await _asked(session, messages, tools, before)
        except ModelUnavailable:
            del self._sessions[scope]  # its time is not to run while the model is waited for
            raise
        return text_of(reply.body), reply.usage, session.recorded[before:]


class JudgeCaller:
    """Implements `core.judge.JudgeModel`: a session a question, so that none is kept."""

    def __init__(self, open_line: Callable[[], Line]) -> None:
        self._open_line = open_line
        self._line: Line | None = None

    async def __call__(self, scope: str, messages: Sequence[Mapping[str, object]]) -> str:
        """The reply's text; raises `ModelError`, or `BudgetSpent` where the run can't pay."""
        self._line = self._line or self._open_line()
        session = Session(self._line, scope, Caps(), SESSION_S)
        try:
            return text_of((await _asked(session, messages)).body)
        finally:
            await session.close()


async def _asked(
    session: Session,
    messages: Sequence[Mapping[str, object]],
    tools: Sequence[Mapping[str, object]] = (),
    before: int = 0,
) -> Reply:
    """The reply to one question; what isn't one is raised, with the exchanges since `before`."""
    asked: dict[str, object] = {"messages": [dict(message) for message in messages]}
    if tools:
        asked["tools"] = [dict(tool) for tool in tools]
    reply = await session.ask(asked)
    if reply.fault.startswith(REPLAY_MISS):
        raise ReplayMiss(reply.fault)
    if reply.fault.startswith(SPENT):
        raise BudgetSpent(reply.fault.removeprefix(SPENT))
    if reply.fault:
        raise ModelUnavailable(reply.fault, lasting=reply.lasting)
    if not reply.ok:
        failed = ModelRefused(f"HTTP {reply.status}: {error_message(reply.body)}")
        failed.exchanges = session.recorded[before:]
        raise failed
    return reply
