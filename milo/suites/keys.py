"""Reading a task's configuration key by key: every refusal names file, key, wanted and found."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from milo.core.errors import TaskError

UNITS = {"": 1 / (1024 * 1024), "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class Table:
    """One table of a configuration file, and the name by which errors call it."""

    def __init__(self, raw: Mapping[str, Any], source: str, path: str = "") -> None:
        self.raw = raw
        self.source = source
        self._path = path

    @classmethod
    def of_toml(cls, text: str, source: str) -> Table:
        """The whole file; raises `TaskError` where it is no TOML."""
        try:
            return cls(tomllib.loads(text), source)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise TaskError(source, "valid TOML", str(error)) from error

    def __contains__(self, key: str) -> bool:
        return key in self.raw

    def check(self, known: Iterable[str]) -> None:
        """Refuse keys that are not known, with the nearest that is."""
        names = sorted(known)
        for key in self.raw:
            if key not in names:
                near = difflib.get_close_matches(str(key), names, 1)
                expected = f"{near[0]!r}" if near else f"one of {', '.join(names)}"
                raise self.error(str(key), expected, "an unknown key")

    def table(self, key: str) -> Table:
        """A table in this one, empty where it is absent."""
        value = self.raw.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, "a table", repr(value))
        return Table(value, self.source, self._name(key))

    def tables(self, key: str) -> tuple[Table, ...]:
        """An array of tables, empty where it is absent."""
        values = self.raw.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self.error(key, "an array of tables", repr(values))
        name = self._name(key)
        return tuple(
            Table(value, self.source, f"{name}[{number}]") for number, value in enumerate(values)
        )

    def items(self, key: str) -> tuple[str | Mapping[str, Any], ...]:
        """An array of strings and tables, empty where it is absent."""
        values = self.raw.get(key, [])
        if not isinstance(values, list) or not all(isinstance(v, str | dict) for v in values):
            raise self.error(key, "an array of strings and tables", repr(values))
        return tuple(values)

    def number(self, key: str, default: float, *, least: float = 0.0, over: bool = True) -> float:
        """A finite number greater than `least`, or (not `over`) at least `least`."""
        value = self.raw.get(key, default)
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not math.isfinite(value) or value < least or (over and value == least):
            wanted = f"a number {'above' if over else 'of at least'} {least:g}"
            raise self.error(key, wanted, repr(value))
        return float(value)

    def span(self, key: str, default: tuple[float, float]) -> tuple[float, float]:
        """Two finite numbers, the lower one first."""
        value = self.raw.get(key, list(default))
        good = isinstance(value, list) and len(value) == 2
        good = good and all(isinstance(v, int | float) and math.isfinite(v) for v in value)
        if not good or isinstance(value[0], bool) or not value[0] < value[1]:
            raise self.error(key, "[LOW, HIGH] with LOW below HIGH", repr(value))
        return (float(value[0]), float(value[1]))

    def whole(self, key: str, default: int, *, least: int = 1) -> int:
        """A whole number of at least `least`."""
        value = self.number(key, default, least=least, over=False)
        if value != int(value):
            raise self.error(key, "a whole number", repr(self.raw.get(key)))
        return int(value)

    def text(self, key: str, default: str = "") -> str:
        """A string."""
        value = self.raw.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, "a string", repr(value))
        return value

    def one_of(self, key: str, known: Iterable[str], default: str) -> str:
        """One of some words."""
        value = self.text(key, default)
        if value not in known:
            raise self.error(key, f"one of {', '.join(known)}", repr(value))
        return value

    def flag(self, key: str, default: bool) -> bool:
        """A boolean."""
        value = self.raw.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, "true or false", repr(value))
        return value

    def texts(self, key: str) -> dict[str, str]:
        """A table of strings."""
        table = self.table(key)
        return {str(name): table.text(str(name)) for name in table.raw}

    def words(self, key: str) -> tuple[str, ...]:
        """An array of strings."""
        values = self.raw.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.error(key, "an array of strings", repr(values))
        return tuple(values)

    def size_mb(self, key: str, old_key: str, default: int) -> int:
        """MiB from `key`, or from the deprecated `old_key` in the form ``2G``.

        Where both are there they must agree.
        """
        old = self.text(old_key)
        if not old:
            return self.whole(key, default)
        size = self._old_size(old_key, old)
        if key in self and self.whole(key, default) != size:
            raise self.error(old_key, f"the size that {key!r} gives, or none", repr(old))
        return size

    def error(self, key: str, expected: str, found: str) -> TaskError:
        """The refusal of one key."""
        return TaskError(f"{self.source} key {self._name(key)!r}", expected, found)

    def _old_size(self, key: str, text: str) -> int:
        number, unit = text.strip().rstrip("bBiI"), ""
        if number and number[-1].upper() in UNITS:
            number, unit = number[:-1], number[-1].upper()
        try:
            return max(1, int(float(number) * UNITS[unit]))
        except (ValueError, OverflowError) as error:
            raise self.error(key, "a size such as 2G", repr(text)) from error

    def _name(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def filled(values: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """Variables with their ``${NAME:-default}`` filled in, and the names that have no default.

    Harbor takes such values from the machine that runs it. A task gets nothing of this machine's
    environment, where keys lie.
    """
    missing = {
        name for value in values.values() for name, default in _references(value) if default is None
    }
    done = {key: VARIABLE.sub(lambda m: m[2] or "", value) for key, value in values.items()}
    return done, frozenset(missing)


def _references(value: str) -> list[tuple[str, str | None]]:
    return [(match[1], match[2]) for match in VARIABLE.finditer(value)]
