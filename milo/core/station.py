"""Where programs that mutate run: what such a program is given, how it ended, what it left.

Coding agents are programs of their own: they are started in a folder, and judged by what they
leave there. Their model is reached through a metered gateway only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from milo.core.packages import Packages
from milo.core.peering import LiveSession
from milo.core.ports import Caps, Command, Exit, SessionReport
from milo.core.task import Limits
from milo.core.tree import FileTree


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """How a program in a sandbox reaches its model: the gateway's address without a path (the
    wire's own path is added by the program), the session's token, the model's name."""

    base_url: str
    token: str
    model: str


Answering = Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]]
"""Answers a program's question, JSON-ready data by JSON-ready data; it may take its time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentJob:
    """A program that edits a folder on its own: what it finds, how it is started, what it may use.

    `launch` makes the command once the access is known. `folders` of the host hold the program.
    `dollars` and `caps` bind the model session, the command's own time-out the whole. `doors` are
    questions that it may post to paths beside its model's; `on_session` is told the model session
    before the program starts.
    """

    scope: str
    workspace: FileTree
    launch: Callable[[Access], Command]
    mounts: Mapping[str, FileTree] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)
    caps: Caps = field(default_factory=Caps)
    dollars: float | None = None
    doors: Mapping[str, Answering] = field(default_factory=dict)
    on_session: Callable[[LiveSession], None] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRun:
    """How such a program ended and what it left. `exit.limit` is ``dollars``, ``capped`` or
    ``model`` where it was ended because its money or its calls were spent, or its model gone."""

    exit: Exit
    workspace: FileTree
    logs: FileTree
    report: SessionReport


class Station(Protocol):
    """Where programs that mutate run: sandboxed, with no network but a metered gateway."""

    def program(self, name: str) -> Path:
        """The host folder that holds an installed program, whether it exists or not."""
        ...

    def installed(self, packages: Packages) -> Path | None:
        """The host folder that holds a harness's packages; None where they are not installed."""
        ...

    async def run(self, job: AgentJob) -> AgentRun:
        """Run to the end or to a limit; when this returns, no process of it is alive."""
        ...
