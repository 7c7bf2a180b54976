"""Builders of briefs, and a workshop whose model says what a test wrote down."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import milo
from milo.core.attempt import AttemptKey, Outcome, Status, Usage
from milo.core.errors import ModelRefused
from milo.core.evidence import Brief, Edge, Evidence, Exchange, ParentView, Trace
from milo.core.fitness import evaluate
from milo.core.harness import Harness
from milo.core.ports import Exit, SessionReport
from milo.core.tree import FileTree

SEEDS = Path(milo.__file__).parent / "seeds"
SEED_NAMES = ("bare", "tool_loop", "plan_act")


def seed(name: str) -> Harness:
    return Harness.from_dir(SEEDS / name)


def calls(*made: tuple[str, Mapping[str, object]], words: str = "") -> Mapping[str, object]:
    """A model's message that calls tools, as chat completions form it."""
    entries = [
        {
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(made)
    ]
    return {"role": "assistant", "content": words or None, "tool_calls": entries}


def said(answer: str | Mapping[str, object]) -> Mapping[str, object]:
    """An answer as a model's message."""
    return {"role": "assistant", "content": answer} if isinstance(answer, str) else answer


@dataclass
class ScriptedWorkshop:
    """Answers in order (a text, or a message that calls tools); smoke compiles every Python file;
    shell appends to a file. `refuses_tools` is a provider that knows no tools."""

    answers: list[str | Mapping[str, object]] = field(default_factory=list)
    smoke_error: str = ""
    asked: list[list[Mapping[str, object]]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    shell_tree: FileTree | None = None
    usage: Usage = field(default_factory=Usage)
    scope: str = "mutator/i1.1/0"
    refuses_tools: bool = False
    offered: list[list[str]] = field(default_factory=list)

    async def smoke(self, tree: FileTree) -> str:
        Harness.from_tree(tree)
        for path in tree:
            if path.endswith(".py"):
                try:
                    ast.parse(tree.text(path))
                except SyntaxError as error:
                    return f"{path}: {error}"
        return self.smoke_error

    async def complete(self, messages: Sequence[Mapping[str, object]]) -> tuple[str, Usage]:
        self.asked.append(list(messages))
        return str(self.answers.pop(0)), Usage(uncached_input=10, output=5, calls=1)

    async def converse(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]]
    ) -> tuple[Mapping[str, object], Usage]:
        self.offered.append([str(tool["function"]["name"]) for tool in tools])  # type: ignore[index]
        if tools and self.refuses_tools:
            raise ModelRefused("HTTP 400: this model has no tools")
        self.asked.append(list(messages))
        return said(self.answers.pop(0)), Usage(uncached_input=10, output=5, calls=1)

    def add(self, report: SessionReport) -> None:
        self.usage = self.usage + report.usage

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        self.commands.append(command)
        return Exit(code=0, seconds=0.1, stdout="shown\n"), self.shell_tree or tree


def evidence(
    task: str,
    reply: str,
    *,
    resolved: bool = False,
    instruction: str = "Add the numbers of `in.txt` and write the sum to `out.txt`.",
    files: tuple[str, ...] = ("in.txt",),
    changed: Mapping[str, str] | None = None,
    stderr: str = "",
    stdout: str = "",
    finish: str = "stop",
) -> Evidence:
    key = AttemptKey(harness="h" * 64, task=task, task_digest="d" * 64, model="m", index=0)
    usage = Usage(uncached_input=200, output=300, calls=1)
    exchange = Exchange(
        request={"messages": [{"role": "user", "content": instruction}]},
        response={
            "choices": [{"message": {"content": reply}, "finish_reason": finish}],
        },
        status=200,
        seconds=1.0,
        usage=usage,
    )
    outcome = Outcome(
        key=key,
        status=Status.COMPLETED,
        reward=float(resolved),
        resolved=resolved,
        usage=usage,
    )
    trace = Trace(
        exchanges=(exchange,), stdout=stdout, stderr=stderr, changed=changed or {}, report="wrong"
    )
    return Evidence(
        instruction=instruction,
        family="f",
        outcome=outcome,
        trace=trace,
        workspace_files=files,
    )


PROSE = "Certainly! Here is how it is done, at length and in words.\n```bash\nsum /path/to/in\n```"


def view(name: str, *items: Evidence, candidate: str = "c0") -> ParentView:
    items = items or (evidence("t1", PROSE, stderr="bash: error: x"), evidence("t2", PROSE))
    scores = evaluate(item.outcome for item in items)
    return ParentView(candidate=candidate, harness=seed(name), scores=scores, evidence=items)


def brief(*parents: ParentView, seed: int = 0, snapshot: tuple[Edge, ...] = ()) -> Brief:
    return Brief(island="i1", round=1, parents=parents, snapshot=snapshot, seed=seed)
