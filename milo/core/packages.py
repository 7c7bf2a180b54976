"""What a harness needs installed beside its own files: packages of registries, by exact version.

A harness stays small and whole as source: it names its packages, and each host shows it the folder
into which they were installed. Equal lists mean one folder, whoever asks for them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from milo.core.errors import HarnessError

PIP = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,-]+\])?==[\w.!+-]+")
NPM = re.compile(r"(@[a-z0-9][\w.-]*/)?[a-z0-9][\w.-]*@\d[\w.+-]*")
VERSION = re.compile(r"\d+\.\d+")
DIGITS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Packages:
    """Packages of PyPI (``name==1.2``) and of npm (``name@1.2.3``), sorted.

    `python` is the least version of Python that they need ("3.12"); "" where any will do.
    """

    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    python: str = ""

    def __bool__(self) -> bool:
        return bool(self.pip or self.npm)

    def __str__(self) -> str:
        return ", ".join((*self.pip, *self.npm)) or "no packages"

    @property
    def digest(self) -> str:
        """What names the folder that holds them: 12 hex digits of their hash."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]

    @property
    def minor(self) -> tuple[int, int]:
        """The least version of Python as numbers; (0, 0) where any will do."""
        first, _, second = self.python.partition(".")
        return (int(first or 0), int(second or 0))

    @classmethod
    def parse(cls, raw: object, source: str) -> Packages:
        """From a manifest's table; raises `HarnessError` naming `source` and the key."""
        if not isinstance(raw, Mapping):
            raise HarnessError(f"{source} key 'packages'", "a table", repr(raw))
        unknown = sorted(set(raw) - {"pip", "npm", "python"})
        if unknown:
            raise HarnessError(f"{source} key 'packages.{unknown[0]}'", "pip, npm or python", "it")
        python = raw.get("python", "")
        if not isinstance(python, str) or (python and not VERSION.fullmatch(python)):
            key = f"{source} key 'packages.python'"
            raise HarnessError(key, 'a version such as "3.12"', repr(python))
        pip = _listed(raw.get("pip", []), PIP, "name==version", f"{source} key 'packages.pip'")
        npm = _listed(raw.get("npm", []), NPM, "name@version", f"{source} key 'packages.npm'")
        return cls(pip=pip, npm=npm, python=python)


def _listed(raw: object, form: re.Pattern[str], words: str, key: str) -> tuple[str, ...]:
    """Sorted: the order of packages means nothing."""
    if not isinstance(raw, list):
        raise HarnessError(key, "a list of strings", repr(raw))
    for item in raw:
        if not isinstance(item, str) or not form.fullmatch(item):
            raise HarnessError(key, f"packages with their exact version, {words}", repr(item))
    return tuple(sorted(raw))
