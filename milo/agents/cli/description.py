"""What MILO must know of a coding agent to run it: one YAML file each.

The files beside this module are the agents that come with MILO; a user's own is a file of the
same form. ``base: NAME`` takes everything from another description that the file doesn't say.

Texts may hold ``{base_url}`` (the gateway, without a path), ``{token}``, ``{model}``, ``{prompt}``,
``{turns}``, ``{seconds}``, and the folders ``{workspace}``, ``{logs}`` and ``{home}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from milo.core.errors import ConfigError

SUFFIX = ".yaml"
Scalar = str | int | float | bool | None


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Wire(StrEnum):
    """The form in which an agent speaks to its model."""

    CHAT = "chat"
    RESPONSES = "responses"
    MESSAGES = "messages"


class Install(_Part):
    """Packages that hold the program, from the npm registry or from PyPI (an environment of its
    own). `node` is the lowest major version of Node that it runs with; a newer one is brought along
    where the machine's is older. `note` says what a person must do where neither will."""

    npm: tuple[str, ...] = ()
    node: int = 0
    pip: tuple[str, ...] = ()
    note: str = ""


class Bounds(_Part):
    """What one mutation may use. `turns` and `seconds` are also told to the program where it can
    be told; `calls`, `tokens` and `dollars` bind at the gateway."""

    turns: int = Field(default=60, ge=1)
    seconds: float = Field(default=1800.0, gt=0)
    calls: int | None = Field(default=200, ge=1)
    tokens: int | None = Field(default=4_000_000, ge=1)
    dollars: float | None = Field(default=10.0, gt=0)
    memory_mb: int = Field(default=4096, ge=64)
    processes: int = Field(default=512, ge=8)


class Selection(_Part):
    """Which of the JSON objects that a program printed are meant.

    `source` is ``stdout`` (one object per line, or one document) or a file below the logs. `each`
    is a dotted path below every object, ``*`` for all entries of a list; `where` the values that
    must stand in an object, by dotted path.
    """

    source: str = "stdout"
    each: str = ""
    where: Mapping[str, Scalar] = Field(default_factory=dict)


class UsageReading(Selection):
    """Where a program says what it spent, as dotted paths of numbers.

    `take` is ``last`` for running totals, ``sum`` for one object per call. `input_is_all` says
    that the input counts cached tokens too. `reasoning` are output tokens that `output` leaves out.
    """

    take: str = Field(default="last", pattern="^(last|sum)$")
    input: str
    output: str
    reasoning: str = ""
    cached_input: str = ""
    cache_write: str = ""
    input_is_all: bool = False


class Words(Selection):
    """Where a program says something: the dotted path of a text."""

    says: str = ""


class Description(_Part):
    """One coding agent.

    `tested` names the version that was run against a scripted model ("" for none). `before` are
    commands run first; `files` are put below HOME; `env` is all of the environment beside PATH
    and HOME. `folders` of the host are shown to it, beside the one that it is installed in, which
    is that of the description that it `shares` one with.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str
    tested: str = ""
    wire: Wire
    install: Install = Install()
    command: tuple[str, ...] = Field(min_length=1)
    before: tuple[tuple[str, ...], ...] = ()
    env: Mapping[str, str] = Field(default_factory=dict)
    files: Mapping[str, str] = Field(default_factory=dict)
    folders: tuple[str, ...] = ()
    bounds: Bounds = Bounds()
    usage: UsageReading | None = None
    errors: tuple[Words, ...] = ()
    words: Words | None = None
    shares: str = ""

    @property
    def place(self) -> str:
        """The name of the folder that it is installed in."""
        return self.shares or self.name


HERE = Path(__file__).parent
PEERS = HERE.parent / "peers"


def built_in(folder: Path = HERE) -> tuple[str, ...]:
    """The names of the descriptions that come with MILO: of coding agents, or in another folder."""
    return tuple(sorted(path.stem for path in folder.glob(f"*{SUFFIX}")))


def _path(name: str) -> Path:
    """The file of a description that comes with MILO; peers lie in a folder of their own."""
    peer = PEERS / f"{name}{SUFFIX}"
    return peer if peer.is_file() else HERE / f"{name}{SUFFIX}"


def load(name: str) -> Description:
    """A description by name, or by the path of a YAML file; raises `ConfigError`."""
    path = Path(name) if name.endswith(SUFFIX) else _path(name)
    data = _data(path, frozenset())
    try:
        return Description.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{path} key {key!r}", first["msg"].lower(), repr(first.get("input"))[:200]
        ) from error


def _data(path: Path, seen: frozenset[Path]) -> dict[str, Any]:
    """A file's content laid over that of its base."""
    if not path.is_file() or path in seen:
        known = f"a YAML file, or one of {', '.join((*built_in(), *built_in(PEERS)))}"
        raise ConfigError(f"agent description {path}", known, "itself" if path in seen else "none")
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "valid YAML", " ".join(str(error).split())) from error
    if not isinstance(data, dict):
        raise ConfigError(str(path), "a mapping of keys", type(data).__name__)
    base = data.pop("base", "")
    if not base:
        return data
    beside = path.parent / str(base) if str(base).endswith(SUFFIX) else None
    below = _data(beside or _path(str(base)), seen | {path})
    return _laid_over(below, data)


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings are merged key by key; everything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _laid_over(old, value) if both else value  # type: ignore[arg-type]
    return merged


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced; other braces stay."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text
