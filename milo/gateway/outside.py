"""JSON from outside as values that a record can hold.

JSON's own numbers may be too large for a float (``1e999``), and some servers write NaN: neither can
be written down again, so that one such number would end a run. A harness is refused; what a
provider says so becomes null.
"""

from __future__ import annotations

import json
import math

DEEPEST = 100
"""Objects and lists inside each other; whatever walks a body recurses."""


def strictly(raw: bytes) -> object:
    """A harness's JSON; raises `ValueError` for what is none, or can't be recorded."""
    try:
        value = json.loads(raw, parse_constant=_no_number, parse_float=_finite)
        if b"\\ud" in raw.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    # Counting the brackets first spares nearly every request the walk.
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and not _is_flat(value):
        raise ValueError(TOO_DEEP)
    return value


def leniently(text: str) -> object:
    """A provider's JSON, a number that is none as null; raises `ValueError` for what is no JSON."""
    try:
        value: object = DECODER.decode(text)
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    return value


TOO_DEEP = f"it is nested more than {DEEPEST} deep"


def _is_flat(value: object) -> bool:
    """Whether nothing is nested deeper than `DEEPEST`; level by level, without recursion."""
    level = [value]
    for _ in range(DEEPEST):
        inside = [part for item in level for part in _parts(item)]
        level = [part for part in inside if isinstance(part, dict | list)]
        if not level:
            return True
    return False


def _parts(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is out of range")
    return number


def _finite_or_null(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


DECODER = json.JSONDecoder(parse_float=_finite_or_null, parse_constant=lambda _: None)
