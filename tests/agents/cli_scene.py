"""A model that edits a folder through whatever tools a coding agent offers it, by script."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import psutil
import pytest

import milo
from milo.agents.cli.description import Description, load
from milo.agents.cli_agent import CliAgentMutator
from milo.app.agents import installed
from milo.app.packages import programs_folder
from milo.app.station import AgentStation
from milo.core.attempt import AttemptKey, Outcome, Status, Usage
from milo.core.errors import ModelError
from milo.core.evidence import Brief, Evidence, Exchange, ParentView, Trace
from milo.core.fitness import evaluate
from milo.core.harness import Harness
from milo.core.ports import Completion, SessionReport, Upstream
from milo.core.tree import FileTree
from milo.gateway.line import Line, Policy
from milo.gateway.pins import Pins
from milo.rollout.local import choose
from milo.testing.tool_user import arguments, shell_among, submission

EDIT = "sed -i 's/Reply with a short bash script/Answer with one bash script/' harness/main.py"
ACCOUNT = (
    "printf '# ask for one script\\n\\nDiagnosis: prose fails 2 of 2\\nEvidence: t1\\n"
    "Hypothesis: fewer format failures\\n' > CHANGE.md"
)
PRICE = 0.001
SCOPE = "mutator/i1.1/0"


@dataclass
class ScriptedEditor:
    """An upstream that runs the commands one by one, then says its last words.

    Where it stands is read from the request, so that agents may ask beside their work (titles,
    summaries). `down` makes every call fail, `forever` makes it go on with the last command.
    """

    commands: Sequence[str] = (EDIT, ACCOUNT)
    words: str = "Done."
    down: bool = False
    forever: bool = False
    hang: bool = False
    model: str = "scripted/editor"
    spent: Usage = field(default_factory=Usage)
    asked: list[Mapping[str, object]] = field(default_factory=list)

    async def complete(self, request: Mapping[str, object], scope: str, nth: int) -> Completion:
        self.asked.append(request)
        if self.down:
            raise ModelError("nobody answers")
        if self.hang:
            await asyncio.sleep(3600)
        call = self._next(request)
        usage = Usage(uncached_input=90, cached_input=10, output=20, calls=1, dollars=PRICE)
        self.spent += usage
        message: dict[str, object] = {"role": "assistant", "content": "" if call else self.words}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [
                {"id": f"call_{len(self.asked)}", "type": "function", "function": function}
            ]
        body = {
            "id": f"chatcmpl-{len(self.asked)}",
            "object": "chat.completion",
            "created": 0,
            "model": "editor",
            "choices": [
                {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
            ],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 10},
            },
        }
        return Completion(status=200, body=body, usage=usage, seconds=0.0)

    def _next(self, request: Mapping[str, object]) -> tuple[str, Mapping[str, object]] | None:
        tools = request.get("tools") or []
        found = shell_among(tools)  # type: ignore[arg-type]
        messages = request["messages"]
        done = sum(m.get("role") == "tool" for m in messages)  # type: ignore[attr-defined]
        if found is None or not self.commands:
            return None
        if done >= len(self.commands):
            if not self.forever:
                return submission(found, done - len(self.commands))
            done = len(self.commands) - 1
        return found[0], arguments(found[1], self.commands[done])

    async def check(self) -> None:
        return

    async def close(self) -> None:
        return


@dataclass
class Workshop:
    """Smoke tests pass unless told otherwise."""

    error: str = ""
    usage: Usage = field(default_factory=Usage)
    scope: str = SCOPE
    calls: tuple[Exchange, ...] = ()

    async def smoke(self, tree: FileTree) -> str:
        Harness.from_tree(tree)
        return self.error

    async def complete(self, messages: object) -> NoReturn:
        raise AssertionError("a coding agent has a model of its own")

    async def converse(self, messages: object, tools: object) -> NoReturn:
        raise AssertionError("a coding agent has a model of its own")

    def add(self, report: SessionReport) -> None:
        self.usage = self.usage + report.usage
        self.calls += report.exchanges

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> NoReturn:
        raise AssertionError("a coding agent has a shell of its own")


def brief_of(seed: str = "bare", harness: Harness | None = None) -> Brief:
    """A brief with two failing attempts on a seed, or on another harness."""
    harness = harness or Harness.from_dir(Path(milo.__file__).parent / "seeds" / seed)
    items = []
    for task in ("t1", "t2"):
        key = AttemptKey(harness=harness.digest, task=task, task_digest="d", model="m", index=0)
        exchange = Exchange(
            request={"messages": [{"role": "user", "content": "Sum in.txt."}]},
            response={"choices": [{"message": {"content": "Certainly!"}}]},
            status=200,
            seconds=1.0,
        )
        items.append(
            Evidence(
                instruction="Sum in.txt.",
                family="f",
                outcome=Outcome(key=key, status=Status.COMPLETED, reward=0.0),
                trace=Trace(exchanges=(exchange,), report="out.txt is missing"),
            )
        )
    scores = evaluate(item.outcome for item in items)
    view = ParentView(candidate="c0", harness=harness, scores=scores, evidence=tuple(items))
    return Brief(island="i1", round=1, parents=(view,), snapshot=(), seed=7)


def station(upstream: Upstream, programs: Path | None = None, **changes: object) -> AgentStation:
    """A station on the strongest sandbox of this host, that gives up on a dead model at once."""
    line = Line(
        upstream=upstream,
        pins=Pins(model=upstream.model),
        rng=np.random.default_rng(0),
        policy=Policy(tries=1),
    )
    made = AgentStation(
        sandbox=choose("auto"),
        open_line=lambda: line,
        owner=f"test-{os.getpid()}",
        programs=programs or programs_folder(),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def mutator(about: Description, upstream: Upstream, **bounds: object) -> CliAgentMutator:
    given = about.model_copy(update={"bounds": about.bounds.model_copy(update=bounds)})
    return CliAgentMutator(given, f"{about.name}:m", station(upstream))


def description(name: str) -> Description:
    """An agent's description; skips the test where the agent isn't installed here."""
    about = load(name)
    if not installed(about):
        folder = programs_folder() / name
        pytest.skip(f"{name} is not installed in {folder} (milo mutators install {name})")
    return about


def alive_with(mark: str) -> list[str]:
    """Living processes of this host whose command line or environment holds a text."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join([*process.cmdline(), *process.environ().values()])
        except (psutil.Error, OSError):
            continue
        if mark in words and process.pid != os.getpid():
            found.append(words[:200])
    return found


def one_file(source: str, **more: object) -> Description:
    """A description of an agent that is a Python program of its own."""
    base = {
        "name": "own",
        "title": "Own",
        "wire": "chat",
        "command": ["python3", "{home}/agent.py", "{base_url}", "{token}"],
        "files": {"agent.py": source},
        "bounds": {"seconds": 20},
    }
    return Description.model_validate({**base, **more})
