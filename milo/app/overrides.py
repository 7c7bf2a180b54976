"""What the user types after ``milo run``: `key=value` words, aliases, lists and sweeps.

The grammar is Hydra's (so sweeps, quoting, lists and null are as there); the keys are MILO's.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from milo.app.convert import unknown_key
from milo.core.errors import ConfigError

ALIASES: Mapping[str, str] = {
    "admission": "strategy.admission",
    "selection": "strategy.selection",
    "winner": "strategy.winner",
    "patience": "strategy.patience",
    "islands": "strategy.islands",
    "agents.mutators": "mutators.pool",
    "agents.orchestrator": "orchestrator.kind",
    "agents.model": "mutators.model",
    "agents.judge": "mutators.judge",
    "agents.registries": "mutators.registries",
}
"""Short or recorded names of keys; a prefix stands for everything below it."""

LISTS = frozenset(
    {
        "seeds",
        "seeds.dirs",
        "mutators",
        "mutators.pool",
        "mutators.registries",
        "suite.families",
        "model.server.args",
    }
)
"""Keys whose commas make a list where no sweep is asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """One `key=value` word: the full key, the value as Python data, and the text as typed."""

    key: str
    value: Any
    raw: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepJob:
    """One run of a multirun: its directory name and its own words, free of sweeps."""

    name: str
    overrides: tuple[str, ...]


def canonical(key: str) -> str:
    """The full key that an alias stands for."""
    head, dot, rest = key.partition(".")
    for alias, full in ALIASES.items():
        if key == alias:
            return full
        if dot and head == alias:
            return f"{full}.{rest}"
    return key


def assignments(words: Sequence[str], known: Iterable[str]) -> tuple[Assignment, ...]:
    """Parse words without sweeps; raises `ConfigError` for a word, key or value out of place.

    `known` holds every key that may be assigned, groups included.
    """
    keys = frozenset(known)
    found: dict[str, Assignment] = {}
    for word in words:
        one = _assignment(word, keys)
        if one.key in found:
            raise ConfigError(
                f"key {one.key!r}", "one value", f"two: {found[one.key].raw!r} and {one.raw!r}"
            )
        found[one.key] = one
    return tuple(found.values())


def expand(words: Sequence[str], known: Iterable[str]) -> tuple[SweepJob, ...]:
    """Every combination of the sweeps in `words`, in Hydra's order (the last one runs fastest)."""
    keys = frozenset(known)
    choices: list[list[str]] = []
    swept: list[bool] = []
    for word in words:
        key, raw = _split(word)
        _known_key(key, keys)
        options = _options(key, raw)
        choices.append(options)
        swept.append(len(options) > 1)
    combinations = itertools.product(*choices)
    return tuple(
        SweepJob(name=_job_name(n, combo, swept), overrides=tuple(combo))
        for n, combo in enumerate(combinations)
    )


def _assignment(word: str, keys: frozenset[str]) -> Assignment:
    key, raw = _split(word)
    full = _known_key(key, keys)
    parsed = _parse(key, raw)
    if parsed is None:
        return Assignment(key=full, value=raw, raw=raw)
    if not parsed.is_sweep_override():
        return Assignment(key=full, value=_unquoted(parsed.value()), raw=raw)
    if full in LISTS and parsed.is_choice_sweep():
        return Assignment(key=full, value=_sweep_items(parsed), raw=raw)
    raise ConfigError(key, "one value (milo run -m runs several)", raw)


def _split(word: str) -> tuple[str, str]:
    key, equals, raw = word.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", key):
        raise ConfigError("argument", "key=value, such as budget.hours=0.2", repr(word))
    return key, raw


def _known_key(key: str, keys: frozenset[str]) -> str:
    full = canonical(key)
    if full not in keys:
        raise unknown_key(key, keys | {k for k in ALIASES if canonical(k) in keys})
    return full


def _parse(key: str, raw: str) -> Any:
    """Hydra's reading of the value; None where its grammar has no place for such text.

    Paths and model names hold characters that the grammar refuses; they are taken as they are.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(f"{key}={raw}")
    except HydraException as error:
        if raw[:1] in "[{'\"" and raw:
            reason = str(error).splitlines()[0]
            raise ConfigError(key, "a well-formed value", f"{raw!r} ({reason})") from error
        return None


def _options(key: str, raw: str) -> list[str]:
    """The words of one key: one without a sweep, else one for each of its values."""
    parsed = _parse(key, raw)
    if parsed is None or not parsed.is_sweep_override():
        return [f"{key}={raw}"]
    if parsed.is_interval_sweep():
        raise ConfigError(key, "a sweep over listed values, such as a,b or range(1,4)", raw)
    values: Iterable[str] = parsed.sweep_string_iterator()
    return [f"{key}={value}" for value in values]


def _sweep_items(parsed: Any) -> list[Any]:
    return [_unquoted(item) for item in parsed.value().list]


def _unquoted(value: Any) -> Any:
    from hydra.core.override_parser.types import QuotedString

    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [_unquoted(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _unquoted(item) for key, item in value.items()}
    return value


def _job_name(n: int, combo: Sequence[str], swept: Sequence[bool]) -> str:
    parts = [word for word, varies in zip(combo, swept, strict=True) if varies]
    label = "+".join(re.sub(r"[^A-Za-z0-9._=-]+", "_", word) for word in parts)
    return f"{n}-{label[:80]}".rstrip("-")
