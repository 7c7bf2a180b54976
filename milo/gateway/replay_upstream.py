"""A recording as a model: the nth call of a scope must be the one that was recorded.

Requests are compared as the harness sent them, by the hash of their canonical JSON; parameters
that the gateway had overridden are left out on both sides, for they never reached the model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping

from milo.core.attempt import Usage
from milo.core.errors import ModelError, ReplayMiss
from milo.core.evidence import Exchange
from milo.core.ports import Completion
from milo.gateway.line import REPLAY_MISS
from milo.gateway.pins import STREAMING

Lookup = Callable[[str], tuple[Exchange, ...]]


class ReplayUpstream:
    """An `Upstream` over recorded exchanges; `lookup` gives those of a scope, in order."""

    def __init__(self, model: str, lookup: Lookup) -> None:
        self._model = model
        self._lookup = lookup

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
        recorded = calls[nth]
        ignored = STREAMING | set(recorded.pinned)
        if canonical(recorded.request, ignored) != canonical(request, ignored):
            difference = first_difference(recorded.request, request, ignored)
            raise ReplayMiss(where + difference)
        return Completion(
            status=recorded.status,
            body=recorded.response,
            usage=recorded.usage,
            seconds=recorded.seconds,
        )

    async def check(self) -> Usage:
        """Raises `ModelError` where the recording's model is unnamed; there is nothing to call."""
        if not self._model:
            raise ModelError("the recording names no model")
        return Usage()

    async def close(self) -> None:
        """Nothing is held."""


def canonical(request: Mapping[str, object], ignored: Iterable[str] = ()) -> str:
    """SHA-256 (hex) of the request's sorted JSON, without the ignored parameters and nulls."""
    kept = _kept(request, ignored)
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
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
