"""Reading `task.toml` key by key: every refusal names the file, the key, what and what else."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from typing import Any

from milo.core.errors import TaskError

TABLES: Mapping[str, frozenset[str]] = {
    "": frozenset(
        {
            "schema_version",
            "version",
            "task",
            "metadata",
            "agent",
            "verifier",
            "environment",
            "solution",
            "source",
            "artifacts",
            "steps",
            "multi_step_reward_strategy",
        }
    ),
    "agent": frozenset({"timeout_sec", "user"}),
    "verifier": frozenset({"timeout_sec", "env", "environment_mode", "environment", "user"}),
    "environment": frozenset(
        {
            "build_timeout_sec",
            "network_mode",
            "allowed_hosts",
            "docker_image",
            "cpus",
            "memory_mb",
            "storage_mb",
            "gpus",
            "gpu_types",
            "env",
            "workdir",
            "healthcheck",
            "memory",
            "storage",
            "allow_internet",
            "os",
            "mcp_servers",
            "skills_dir",
        }
    ),
}
UNITS = {"": 1 / (1024 * 1024), "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}


class Config:
    """A parsed `task.toml`, and the name by which errors call it."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        try:
            self.raw: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise TaskError(source, "valid TOML", str(error)) from error
        for table, known in TABLES.items():
            for key in self.table(table):
                self._check_known(table, key, known)

    def table(self, name: str) -> dict[str, Any]:
        """A table of the file (dots descend, "" is the whole file), empty where it is absent."""
        value: Any = self.raw
        for part in name.split(".") if name else ():
            value = value.get(part, {})
            if not isinstance(value, dict):
                raise self.error(name, "a table", repr(value))
        return dict(value)

    def number(self, table: str, key: str, default: float, *, least: float = 0.0) -> float:
        """A finite number greater than `least`."""
        value = self.table(table).get(key, default)
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not math.isfinite(value) or value <= least:
            raise self.error(f"{table}.{key}", f"a number above {least:g}", repr(value))
        return float(value)

    def whole(self, table: str, key: str, default: int) -> int:
        """A whole number of at least 1."""
        value = self.number(table, key, default)
        if value != int(value):
            raise self.error(f"{table}.{key}", "a whole number", repr(value))
        return int(value)

    def text(self, table: str, key: str, default: str = "") -> str:
        """A string."""
        value = self.table(table).get(key, default)
        if not isinstance(value, str):
            raise self.error(f"{table}.{key}", "a string", repr(value))
        return value

    def flag(self, table: str, key: str, default: bool) -> bool:
        """A boolean."""
        value = self.table(table).get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{table}.{key}", "true or false", repr(value))
        return value

    def texts(self, table: str, key: str) -> dict[str, str]:
        """A table of strings."""
        value = self.table(f"{table}.{key}")
        for name, item in value.items():
            if not isinstance(item, str):
                raise self.error(f"{table}.{key}.{name}", "a string", repr(item))
        return value

    def size_mb(self, key: str, old_key: str, default: int) -> int:
        """MiB from `key`, or from the deprecated `old_key` in the form ``2G``."""
        old = self.text("environment", old_key)
        if not old or key in self.table("environment"):
            return self.whole("environment", key, default)
        number, unit = old.rstrip("bBiI"), ""
        if number and number[-1].upper() in UNITS:
            number, unit = number[:-1], number[-1].upper()
        try:
            return max(1, int(float(number) * UNITS[unit]))
        except (ValueError, OverflowError) as error:
            raise self.error(f"environment.{old_key}", "a size such as 2G", repr(old)) from error

    def error(self, key: str, expected: str, found: str) -> TaskError:
        """The refusal of one key."""
        return TaskError(f"{self.source} key {key!r}", expected, found)

    def _check_known(self, table: str, key: str, known: frozenset[str]) -> None:
        if key in known:
            return
        near = difflib.get_close_matches(key, sorted(known), 1)
        expected = f"{near[0]!r}" if near else f"one of {', '.join(sorted(known))}"
        raise self.error(f"{table}.{key}".strip("."), expected, "an unknown key")
