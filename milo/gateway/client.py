"""Calls from inside MILO (mutators, orchestrators): the same line, meter, caps and record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from milo.core.attempt import Usage
from milo.core.errors import BudgetExceeded, ModelError, ReplayMiss
from milo.core.evidence import Exchange
from milo.core.ports import Caps, SessionReport
from milo.gateway.line import REPLAY_MISS, Line, Reply
from milo.gateway.session import Session
from milo.gateway.wire import error_message


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The text of one completion, what it cost, and its record."""

    text: str
    usage: Usage
    exchanges: tuple[Exchange, ...]


async def complete(
    line: Line,
    scope: str,
    messages: Sequence[Mapping[str, object]],
    *,
    caps: Caps | None = None,
    deadline_s: float = 600.0,
    **parameters: object,
) -> Answer:
    """One call under its own session; `parameters` are OpenAI's (temperature, max_tokens, …).

    Raises `ModelError` where the model can't be had or refuses the request, `ReplayMiss` where a
    recording lacks it, `BudgetExceeded` where a cap is in the way.
    """
    session = Session(line, scope, caps or Caps(), deadline_s)
    try:
        reply = await session.ask({"messages": [dict(m) for m in messages], **parameters})
    finally:
        report = await session.close()
    raise_if_failed(report, reply)
    return Answer(text=text_of(reply.body), usage=report.usage, exchanges=report.exchanges)


def raise_if_failed(report: SessionReport, reply: Reply) -> None:
    """Turn a failed reply into its error."""
    if report.fault.startswith(REPLAY_MISS):
        raise ReplayMiss(report.fault)
    if report.capped:
        raise BudgetExceeded(f"model cap reached: {report.capped}")
    if not reply.ok:
        raise ModelError(report.fault or f"HTTP {reply.status}: {error_message(reply.body)}")


def text_of(body: Mapping[str, object]) -> str:
    """The first choice's text; "" where it has none."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return ""
    message = choices[0].get("message") or {}
    return str(message.get("content") or "")
