"""Frozen values to JSON and back, by their own types (pydantic), exact to the last bit.

NaN and infinities are refused both ways: no record may hold a number that is no number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from milo.core.errors import ConfigError, RecordError
from milo.core.events import EVENT_TYPES, Event
from milo.core.evidence import Trace
from milo.core.plan import RunPlan

T = TypeVar("T")


@cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    """Building an adapter costs milliseconds, using it microseconds."""
    return TypeAdapter(cls)


def dump_json(data: object, *, sort_keys: bool = False) -> bytes:
    """JSON-ready data as compact UTF-8; raises `RecordError` for what JSON can't hold.

    A lone surrogate (models do emit half an emoji) stays an escape, so that it survives.
    """
    options: dict[str, Any] = {"allow_nan": False, "separators": (",", ":"), "sort_keys": sort_keys}
    try:
        return json.dumps(data, ensure_ascii=False, **options).encode()
    except UnicodeEncodeError:
        return json.dumps(data, **options).encode()
    except (ValueError, TypeError) as error:
        raise RecordError(f"a record can't be written: {error}") from error


def encode(value: object, *, sort_keys: bool = False) -> bytes:
    """Any frozen value of the core as JSON; raises `RecordError` for NaN and infinities."""
    # Core holds whole numbers in float fields; that is no reason for a warning.
    cls: Any = type(value)
    return dump_json(_adapter(cls).dump_python(value, warnings=False), sort_keys=sort_keys)


def decode(cls: type[T], data: bytes, where: str) -> T:
    """A value of `cls` from its JSON; raises `RecordError` naming `where`."""
    kind: Any = cls
    adapter = _adapter(kind)
    try:
        if _needs_care(data):
            value: T = adapter.validate_python(load_json(data, where))
        else:
            value = adapter.validate_json(data, strict=True)
        return value
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RecordError(f"{where}: no {cls.__name__}: {place}: {first['msg']}") from error


def load_json(data: bytes, where: str) -> Any:
    """JSON data without NaN and infinities; raises `RecordError` naming `where`."""
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except ValueError as error:
        raise RecordError(f"{where}: no valid JSON: {error}") from error


def decode_event(kind: str, data: bytes, where: str) -> Event:
    """The event that is stored under a kind; raises `RecordError`."""
    if kind not in EVENT_TYPES:
        raise RecordError(f"{where}: {kind!r} is no kind of event of this version")
    return decode(EVENT_TYPES[kind], data, where)


def decode_trace(data: bytes, where: str) -> Trace:
    """An attempt's trace; raises `RecordError`."""
    return decode(Trace, data, where)


def encode_plan(plan: RunPlan) -> dict[str, object]:
    """A plan as JSON-ready data: what `run.json`'s neighbour and `RunStarted` hold."""
    data: dict[str, object] = _adapter(RunPlan).dump_python(plan, mode="json", warnings=False)
    return data


def decode_plan(data: Mapping[str, object]) -> RunPlan:
    """A plan from JSON-ready data; raises `ConfigError` naming the key."""
    try:
        plan: RunPlan = _adapter(RunPlan).validate_python(data)
        return plan
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"plan key {key}", first["msg"], repr(first["input"])) from error


def _needs_care(data: bytes) -> bool:
    """Whether the fast parser would let a NaN pass, or refuse a lone surrogate."""
    return b"NaN" in data or b"Infinity" in data or b"\\ud" in data


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")
