"""Plain data to typed plans and back, strictly.

The one converter between what configuration and records hold (mappings, lists, strings, numbers)
and the frozen dataclasses of `milo.core.plan`. Unknown keys and wrong types are refused with a
message that names the key, what was expected and what was found.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from milo.core.errors import ConfigError

T = TypeVar("T")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that the user most likely meant, or None where nothing is close.

    A dotted key may also be meant by its last part alone (``hours`` for ``budget.hours``).
    """
    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if close:
        return close[0]
    tails = {w.rsplit(".", 1)[-1]: w for w in reversed(words)}
    tail = difflib.get_close_matches(word.rsplit(".", 1)[-1], sorted(tails), n=1, cutoff=0.75)
    return tails[tail[0]] if tail else None


def unknown_key(key: str, known: Iterable[str]) -> ConfigError:
    """The refusal of a key, with the nearest valid one where there is one."""
    words = sorted(known)
    meant = nearest(key, words)
    expected = f"a known key, such as {meant!r}" if meant else f"one of {', '.join(words)}"
    return ConfigError(f"key {key!r}", expected, "an unknown one")


def leaves(cls: type, prefix: str = "") -> dict[str, Any]:
    """Every dotted key below a dataclass, with its declared type, in declaration order."""
    hints = typing.get_type_hints(cls)
    found: dict[str, Any] = {}
    for f in dataclasses.fields(cls):
        key, hint = f"{prefix}{f.name}", hints[f.name]
        if dataclasses.is_dataclass(hint):
            found |= leaves(typing.cast(type, hint), f"{key}.")
        else:
            found[key] = hint
    return found


def build(cls: type[T], data: object, where: str = "") -> T:
    """An instance of dataclass `cls` from a mapping; absent keys keep their defaults.

    Raises `ConfigError` naming the dotted key below `where`.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(where or "configuration", "a mapping of keys", _say(data))
    hints = typing.get_type_hints(cls)
    prefix = f"{where}." if where else ""
    for key in data:
        if key not in hints:
            raise unknown_key(f"{prefix}{key}", [f"{prefix}{name}" for name in hints])
    return cls(**{key: _value(hints[key], data[key], f"{prefix}{key}") for key in data})


def plain(value: object) -> Any:
    """Plain data (dict, list, str, int, float, bool, None) of a plan; `build` inverts it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value


def flat(value: object, prefix: str = "") -> dict[str, Any]:
    """The leaves of a plan as dotted key -> plain value, in declaration order."""
    found: dict[str, Any] = {}
    for key, item in plain(value).items() if not isinstance(value, Mapping) else value.items():
        if isinstance(item, Mapping):
            found |= flat(item, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = item
    return found


def _value(hint: Any, value: object, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return build(typing.cast(type, hint), value, where)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _enum(hint, value, where)
    origin = typing.get_origin(hint)
    if origin is tuple:
        return _tuple(typing.get_args(hint)[0], value, where)
    if origin in (types.UnionType, typing.Union):
        return _optional(typing.get_args(hint), value, where)
    return _scalar(hint, value, where)


def _scalar(hint: Any, value: object, where: str) -> Any:
    fits = isinstance(value, hint)
    if hint is not bool and isinstance(value, bool):
        fits = False
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not fits:
        raise ConfigError(where, _NOUNS[hint], _say(value))
    return value


def _enum(hint: type[StrEnum], value: object, where: str) -> StrEnum:
    values = [member.value for member in hint]
    if value not in values:
        raise ConfigError(where, f"one of {', '.join(values)}", _say(value))
    return hint(str(value))


def _tuple(item: Any, value: object, where: str) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(where, "a list", _say(value))
    return tuple(_value(item, each, f"{where}[{n}]") for n, each in enumerate(value))


def _optional(options: tuple[Any, ...], value: object, where: str) -> Any:
    if value is None:
        return None
    (hint,) = [option for option in options if option is not type(None)]
    try:
        return _value(hint, value, where)
    except ConfigError as error:
        raise ConfigError(error.thing, f"{error.expected} or null", error.found) from None


_NOUNS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}


def _say(value: object) -> str:
    """A found value with its kind, short enough for one line."""
    if value is None:
        return "null"
    kind = "a list" if isinstance(value, list | tuple) else type(value).__name__
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({kind})"
