"""Coding agents as mutators: run in a sandbox on a folder, judged by the tree that they leave."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from milo.agents.cli.description import Description, filled
from milo.agents.cli.ending import Ended, Ending, ended
from milo.agents.cli.reading import usage_said
from milo.agents.cli.workspace import BRIEF, PROMPT, Left, lay_out, taken
from milo.core.attempt import Usage
from milo.core.errors import MiloError, ModelUnavailable
from milo.core.evidence import Brief, Proposal
from milo.core.ports import Caps, Command, Workshop
from milo.core.station import Access, AgentJob, AgentRun, Station
from milo.core.task import Limits
from milo.core.tree import FileTree

START_AT = "/opt/milo-start"
START = "start.py"
OUTPUT_BYTES = 8 * 1024 * 1024
STORAGE_MB = 1024
SHOWN = 3


class AgentFailed(MiloError):
    """A coding agent left no child; the message says how it ended and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Worked:
    """One run of an agent: how it ended, what it left, and what it says that it spent."""

    ended: Ended
    left: Left
    run: AgentRun
    said: Usage | None


class CliAgentMutator:
    """Runs one coding agent on the brief's workspace. Stateless: may be shared.

    `name` is as the pool names it.
    """

    def __init__(self, description: Description, name: str, station: Station) -> None:
        self.description = description
        self.name = name
        self._station = station

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """The child that was left, whole or not; raises `AgentFailed` where it is none, and
        `ModelUnavailable` where that is its provider's doing."""
        worked = await self.work(brief, workshop.scope)
        report, reason = worked.run.report, self._refusal(worked, brief)
        if reason and report.fault and worked.ended.ending is Ending.NO_MODEL:
            workshop.usage = workshop.usage + report.usage  # and no record: it is all done again
            raise ModelUnavailable(f"mutator {self.name}: {reason}")
        workshop.add(report)
        if not reason and not worked.ended.ending.is_whole:
            error = await workshop.smoke(worked.left.tree)
            reason = f"{worked.ended}, and the smoke test of what it left fails: {error}"
            reason = reason if error else ""
        if reason:
            raise AgentFailed(f"mutator {self.name}: {reason}")
        change = worked.left.change
        if not worked.ended.ending.is_whole:
            change = replace(change, title=f"{change.title} (unfinished: {worked.ended.ending})")
        return Proposal(tree=worked.left.tree, change=change, usage=report.usage)

    async def work(self, brief: Brief, scope: str) -> Worked:
        """Run the agent to its end or its limit; its model calls are made under `scope`."""
        workspace = lay_out(brief)
        job = agent_job(self.description, self._station, workspace, brief, scope)
        run = await self._station.run(job)
        reading = self.description.usage
        return Worked(
            ended=ended(self.description, run),
            left=taken(workspace, run.workspace, brief),
            run=run,
            said=usage_said(reading, run.exit.stdout, run.logs) if reading else None,
        )

    def _refusal(self, worked: Worked, brief: Brief) -> str:
        """Why what was left is no child, or ""."""
        left, parent = worked.left, brief.parents[0].harness
        if left.tree == parent.tree:
            outside = ", ".join(left.elsewhere[:SHOWN])
            aside = f" (it wrote {outside}, where nothing counts)" if outside else ""
            return f"the harness is unchanged{aside}; {worked.ended}"
        if left.tree.digest in brief.forbidden_digests:
            return f"this child was already proposed; {worked.ended}"
        locked = parent.forbidden_edits(left.tree)
        others = [other.harness.tree for other in brief.parents[1:]]
        mine = [p for p in locked if not any(left.tree.get(p) == o.get(p) for o in others)]
        if mine:
            return f"the manifest does not allow to edit {', '.join(mine[:SHOWN])}"
        return ""


def agent_job(
    about: Description, station: Station, workspace: FileTree, brief: Brief, scope: str
) -> AgentJob:
    """A program at work on a folder, as its description says; its model calls are under `scope`."""
    bounds = about.bounds
    script = Path(__file__).parent / "cli" / START
    packages = station.installed(brief.parents[0].harness.manifest.packages)
    own = _folders(about, station)
    return AgentJob(
        scope=scope,
        workspace=workspace,
        launch=partial(_command, about, own, packages),
        mounts={START_AT: FileTree.of_texts({START: script.read_text(encoding="utf-8")})},
        folders=tuple(dict.fromkeys((*own, *([packages] if packages else ())))),
        limits=Limits(
            memory_mb=bounds.memory_mb,
            storage_mb=STORAGE_MB,
            processes=bounds.processes,
            cpus=2.0,
        ),
        caps=Caps(calls=bounds.calls, tokens=bounds.tokens),
        dollars=bounds.dollars,
    )


def _folders(about: Description, station: Station) -> tuple[Path, ...]:
    own = station.program(about.place)
    return tuple(p for p in (own, *map(Path, about.folders)) if p.is_dir())


def _command(
    about: Description, folders: Sequence[Path], packages: Path | None, access: Access
) -> Command:
    """How the program is started, once it is known how it reaches its model.

    The harness's packages are there for its smoke test alone, so they are on no path.
    """
    bounds = about.bounds
    values = {
        "base_url": access.base_url,
        "token": access.token,
        "model": access.model,
        "prompt": PROMPT,
        "turns": str(bounds.turns),
        "seconds": str(int(bounds.seconds)),
    }
    places = [place for f in folders for place in (f / "node_modules/.bin", f / "bin")]
    job = {
        "path": [*(str(place) for place in places), f"{{workspace}}/{BRIEF}"],
        "files": {name: filled(text, values) for name, text in about.files.items()},
        "env": {
            **({"MILO_PACKAGES": str(packages)} if packages else {}),
            **{name: filled(text, values) for name, text in about.env.items()},
        },
        "before": [[filled(word, values) for word in argv] for argv in about.before],
        "command": [filled(word, values) for word in about.command],
    }
    return Command(
        argv=("python3", f"{START_AT}/{START}", json.dumps(job)),
        timeout_s=bounds.seconds,
        gateway=True,
        output_bytes=OUTPUT_BYTES,
    )
