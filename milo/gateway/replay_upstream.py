"""A recording as a model: the nth call of a scope must be the one that was recorded.

Requests are compared as the harness sent them, by the hash of their canonical JSON; parameters
that the gateway had overridden are left out on both sides, for they never reached the model.

Programs that put the date, durations and ids of their own into what they ask are replayed loosely:
figures, hexadecimal ids and names of days and months are left out on both sides, and calls that
such a program makes side by side may come in another order. Every other word must be the same. A
call that was cut unanswered is not answered either.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from milo.core.attempt import Usage
from milo.core.errors import ModelError, ReplayMiss
from milo.core.evidence import Exchange
from milo.core.ports import Completion
from milo.gateway.line import REPLAY_MISS
from milo.gateway.pins import STREAMING
from milo.gateway.session import CUT_STATUS

Lookup = Callable[[str], tuple[Exchange, ...]]
DAYS = "mon|tue|tues|wed|wednes|thu|thurs|fri|sat|satur|sun"
MONTHS = (
    "jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july|"
    "august|september|october|november|december"
)
CHANCE = re.compile(
    rf"\b(?:{DAYS})(?:day)?\b|\b(?:{MONTHS})\b|\b[0-9a-f]{{6,}}\b|\d+(?:\.\d+)?", re.IGNORECASE
)
"""What a clock or a random generator puts into a text."""


class ReplayUpstream:
    """An `Upstream` over recorded exchanges; `lookup` gives those of a scope, in order.

    `loosely` compares as the module says. An upstream then serves one session of each scope.
    """

    def __init__(self, model: str, lookup: Lookup, *, loosely: bool = False) -> None:
        self._model = model
        self._lookup = lookup
        self._loosely = loosely
        self._answered: dict[str, set[int]] = {}

    @property
    def model(self) -> str:
        """The recorded model's own name."""
        return self._model

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        """The recorded answer; raises `ReplayMiss` naming scope, n and the first difference."""
        calls = [exchange for exchange in self._lookup(scope) if exchange.usage.calls]
        where = f"{REPLAY_MISS}scope {scope!r}, call {nth}: "
        if nth >= len(calls):
            raise ReplayMiss(f"{where}the recording holds {len(calls)} calls")
        recorded = self._like(request, calls, scope, nth)
        if recorded is None:
            ignored = STREAMING | set(calls[nth].pinned)
            raise ReplayMiss(where + first_difference(calls[nth].request, request, ignored))
        if self._loosely and recorded.status == CUT_STATUS:
            await asyncio.Event().wait()  # it was never answered: whoever waits is cut again
        return Completion(
            status=recorded.status,
            body=recorded.response,
            usage=recorded.usage,
            seconds=recorded.seconds,
        )

    def _like(
        self, request: Mapping[str, object], calls: Sequence[Exchange], scope: str, nth: int
    ) -> Exchange | None:
        """The recorded call that this one repeats; None where there is none."""
        answered = self._answered.setdefault(scope, set())
        others = [n for n in range(len(calls)) if n not in answered and n != nth]
        for n in [nth, *others] if self._loosely else [nth]:
            ignored = STREAMING | set(calls[n].pinned)
            asked = [canonical(r, ignored, self._loosely) for r in (calls[n].request, request)]
            if asked[0] == asked[1]:
                answered.add(n)
                return calls[n]
        return None

    async def check(self) -> Usage:
        """Raises `ModelError` where the recording's model is unnamed; there is nothing to call."""
        if not self._model:
            raise ModelError("the recording names no model")
        return Usage()

    async def close(self) -> None:
        """Nothing is held."""


def canonical(
    request: Mapping[str, object], ignored: Iterable[str] = (), loosely: bool = False
) -> str:
    """SHA-256 (hex) of the request's sorted JSON, without the ignored parameters and nulls, and
    `loosely` without what a clock or a random generator put there."""
    kept = _kept(request, ignored)
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    text = CHANCE.sub("#", text) if loosely else text
    return hashlib.sha256(text.encode()).hexdigest()


def first_difference(
    recorded: Mapping[str, object], made: Mapping[str, object], ignored: Iterable[str] = ()
) -> str:
    """The path of the first field that differs, and both values, shortened."""
    path, old, new = _differ("", _kept(recorded, ignored), _kept(made, ignored))
    return f"field {path or '(root)'} was {_short(old)}, is {_short(new)}"


def _kept(request: Mapping[str, object], ignored: Iterable[str]) -> dict[str, object]:
    left_out = set(ignored) | {"n"}
    return {k: v for k, v in request.items() if k not in left_out and v is not None}


def _differ(path: str, old: object, new: object) -> tuple[str, object, object]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                return _differ(f"{path}.{key}".lstrip("."), old.get(key), new.get(key))
    if isinstance(old, list) and isinstance(new, list):
        for i, (a, b) in enumerate(zip(old, new, strict=False)):
            if a != b:
                return _differ(f"{path}[{i}]", a, b)
        return f"{path} (length)", len(old), len(new)
    return path, old, new


def _short(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 160 else f"{text[:80]} … {text[-70:]}"
