"""What each reader gets, searched for the marks of every place it may not read (SPEC §6).

The list is `milo.core.disclosure`; here it is walked: marks are planted in every field of every
task, attempt and candidate of a whole run, and every text that a mutator, the orchestrator or a
running harness is given is searched for them. What a reader may see must be found too, so that a
test which finds nothing proves something.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import pytest
from marked_world import (
    SECRET,
    SPLITS,
    TRACE_PLACES,
    MarkedRunner,
    Onlooker,
    Watcher,
    marked_plan,
    marked_suite,
    marks_in,
    places,
    task_of,
    with_steps,
)

from milo.agents.agent_loop import AgentLoopMutator
from milo.agents.brief import as_files, prompt
from milo.agents.cli.workspace import lay_out
from milo.agents.orchestrator import AgentOrchestrator
from milo.agents.patches import EditRefused
from milo.agents.population import described
from milo.agents.single_call import SingleCallMutator
from milo.core.attempt import Usage
from milo.core.evidence import Brief
from milo.core.ports import AttemptResult, Exit, SessionReport
from milo.core.task import Task
from milo.core.tree import FileTree
from milo.runtime import driver as driving
from milo.runtime.parts import HostParts
from milo.runtime.seeding import Seed
from milo.runtime.stage import InlineStage
from milo.search.referee import check_answer, next_island
from milo.search.rules import RulesOrchestrator
from milo.testing.fake_parts import FakeParts
from milo.testing.landscape import landscape_harness
from milo.testing.memory_records import MemoryRecords

Attempt = Callable[..., Awaitable[AttemptResult]]

MUTATOR_READS = {
    *(("search", place) for place in ("id", "instruction", "family", *TRACE_PLACES)),
    ("island", "change"),
}
"""Of tasks the search split's alone, and nothing of their files but the names."""
ORCHESTRATOR_READS = {("search", "id"), ("island", "change")}
HARNESS_READS = {"instruction", "workspace", "env"}


@dataclass(kw_only=True)
class World:
    """A marked run that has ended, and what everybody saw of it."""

    records: MemoryRecords = field(default_factory=MemoryRecords)
    mutators: Mapping[str, Onlooker] = field(
        default_factory=lambda: {name: Onlooker(name=name) for name in ("one", "two")}
    )
    orchestrator: Watcher = field(default_factory=Watcher)

    @property
    def briefs(self) -> list[Brief]:
        return [brief for mutator in self.mutators.values() for brief in mutator.seen]


@pytest.fixture(scope="module")
def world() -> World:
    made = World()
    parts = FakeParts(
        plan=marked_plan(),
        the_suite=marked_suite(),
        records=made.records,
        runner=MarkedRunner(),  # type: ignore[arg-type]
        mutators=made.mutators,
        the_orchestrator=made.orchestrator,
        host_parts=HostParts,
        the_secrets=(SECRET,),
    )
    seeds = [Seed(name=f"s{n}", harness=landscape_harness({"a": n}, f"s{n}")) for n in range(2)]
    watcher = driving.Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    asyncio.run(driving.Driver(parts, InlineStage(parts), seeds, watcher).run())
    return made


class Workshop:
    """Keeps every word that a mutator says to its model or sends to its shell."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.scope = "mutator/i1.1/0"
        self.said: list[str] = []

    async def smoke(self, tree: FileTree) -> str:
        return ""

    async def complete(self, messages: Sequence[Mapping[str, object]]) -> tuple[str, Usage]:
        self.said.append(json.dumps(list(messages), ensure_ascii=False))
        names = [n for n in ("brief/parent-tasks/01.md",) if len(self.said) == 1]
        call = {"tool": "read", "path": names[0]} if names else {"tool": "bash", "command": "ls"}
        return f"```json\n{json.dumps(call)}\n```", Usage()

    async def converse(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]]
    ) -> tuple[Mapping[str, object], Usage]:
        self.said.append(json.dumps(list(tools), ensure_ascii=False))
        text, usage = await self.complete(messages)
        return {"role": "assistant", "content": text}, usage

    def add(self, report: SessionReport) -> None:
        raise AssertionError("nobody here has a session of its own")

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        self.said += [f"{path}\n{tree.text(path)}" for path in tree]
        return Exit(code=0, seconds=0.1), tree


def texts_of(tree: FileTree) -> str:
    return "\n".join(f"{path}\n{tree.text(path)}" for path in tree)


def said_by_models(brief: Brief) -> str:
    workshop = Workshop()
    for mutator in (SingleCallMutator("m"), AgentLoopMutator("m", steps=4)):
        with pytest.raises(EditRefused):
            asyncio.run(mutator.propose(brief, workshop))
    return "\n".join(workshop.said)


MUTATOR_VIEWS: Mapping[str, Callable[[Brief], str]] = {
    "the brief itself": repr,
    "its files": lambda brief: json.dumps(as_files(brief), ensure_ascii=False),
    "its prompt": prompt,
    "a coding agent's folder": lambda brief: texts_of(lay_out(brief)),
    "what models are told": said_by_models,
}


@pytest.mark.parametrize("view", MUTATOR_VIEWS)
def test_a_mutator_reads_what_the_list_gives_it_and_nothing_else(world: World, view: str) -> None:
    briefs = world.briefs
    assert len(briefs) > 4
    found: set[str] = set()
    for brief in briefs if view != "what models are told" else briefs[-2:]:
        found |= marks_in(MUTATOR_VIEWS[view](brief))
    assert places(found) <= MUTATOR_READS
    shown = {"instruction", "stdout", "reply", "report", "changed"}
    assert places(found) >= {("search", place) for place in shown}


def test_no_island_sees_another_islands_words(world: World) -> None:
    seen: dict[str, set[str]] = {}
    for brief in world.briefs:
        assert len(brief.parents) == 1
        found = marks_in(repr(brief)) | marks_in(texts_of(lay_out(brief)))
        seen.setdefault(brief.island, set()).update(m for m in found if ".island." in m)
    assert seen == {f"i{n}": {f"MARK.island.{n}.change."} for n in (1, 2)}


def test_a_child_that_holds_a_held_out_tasks_words_is_sent_back_without_naming_them(
    world: World,
) -> None:
    errors = [brief.error for brief in world.briefs if brief.error]
    assert errors, "the first child of each round breaks the rule"
    assert all("held out" in error and "MARK" not in error for error in errors)
    proposed = [r.event for r in world.records.journal if getattr(r.event, "sent_back", ())]
    assert any("MARK.validation.0.id." in repr(event) for event in proposed), (
        "the run's owner is told"
    )


ORCHESTRATOR_VIEWS: Mapping[str, Callable[[World], Iterator[str]]] = {
    "the view itself": lambda world: (
        repr([*view.lineage]) + repr(view.topology.islands) + repr(view)
        for view, _ in world.orchestrator.seen
    ),
    "its words": lambda world: (described(*seen) for seen in world.orchestrator.seen),
    "what its model is told": lambda world: iter(told_to_the_orchestrators_model(world)),
}


def told_to_the_orchestrators_model(world: World) -> list[str]:
    said: list[str] = []

    async def converse(
        messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]]
    ) -> tuple[Mapping[str, object], Usage]:
        said.append(json.dumps([*messages, *tools], ensure_ascii=False))
        return {"role": "assistant", "content": "no answer"}, Usage()

    agent = AgentOrchestrator(
        converse=converse,
        referee=check_answer,
        fallback=RulesOrchestrator(),
        name_island=next_island,
    )
    view, island = world.orchestrator.seen[-1]
    asyncio.run(agent.consult(view, island))
    return said


@pytest.mark.parametrize("view", ORCHESTRATOR_VIEWS)
def test_the_orchestrator_reads_figures_and_words_of_mutators_alone(
    world: World, view: str
) -> None:
    found = marks_in("\n".join(ORCHESTRATOR_VIEWS[view](world)))
    assert places(found) <= ORCHESTRATOR_READS
    assert places(found) >= {("search", "id"), ("island", "change")}


def test_the_marks_are_everywhere_else(world: World) -> None:
    """Without this a run that planted nothing would pass."""
    kept = "".join(map(repr, world.records.traces.values()))
    kept += "".join(map(repr, world.records.outcomes.values()))
    for split in SPLITS:
        assert {(split, place) for place in (*TRACE_PLACES, "verifier_output")} <= places(
            marks_in(kept)
        )
    assert SECRET not in kept, "what is secret isn't even kept"
    assert SECRET not in "".join(map(repr, world.briefs))


def test_every_field_of_a_task_that_holds_words_bears_a_mark() -> None:
    """A new field of a task must be planted here, or nobody would notice that it leaks."""
    task = with_steps(task_of("search", 1), "search", 1)
    plain = task_of("search", 1)
    blank = {"limits", "needs", "resolved_at", "setting", "step_reward", "reward_range"}
    for f in fields(Task):
        value = [getattr(task, f.name), getattr(plain, f.name)]
        texts = [texts_of(v) if isinstance(v, FileTree) else repr(v) for v in value]
        steps = [texts_of(s.tests) + texts_of(s.solution) for s in task.steps]
        assert f.name in blank or marks_in("".join((*texts, *steps)))


SPY = """
import os
for name, value in sorted(os.environ.items()): print(name, value)
for root in ("/", os.path.expanduser("~")):
    for place, folders, names in os.walk(root):
        folders[:] = [f for f in folders if os.path.join(place, f) not in
                      ("/usr", "/proc", "/sys", "/dev", "/lib", "/lib64", "/bin", "/etc")]
        for name in names:
            path = os.path.join(place, name)
            try: print(path, open(path, errors="replace").read()[:2000])
            except OSError as error: print(path, error)
"""


@pytest.mark.parametrize("in_steps", [False, True])
async def test_a_harness_reads_its_own_tasks_instruction_folder_and_variables(
    attempt: Attempt, in_steps: bool
) -> None:
    script = FileTree.of_texts({"test.sh": "#!/bin/sh\necho 0 > /logs/verifier/reward.txt\n"})
    plain = task_of("search", 1)
    task = with_steps(plain, "search", 1) if in_steps else plain
    result = await attempt(SPY, _runnable(task, script))
    assert result.outcome.reward == 0.0, result.outcome
    found = marks_in(result.trace.stdout)
    own = {(("search", place)) for place in HARNESS_READS}
    assert places(found) == (own | {("search", "step_files")} if in_steps else own)


def _runnable(task: Task, script: FileTree) -> Task:
    """The task with a test that can be run beside the marks."""
    plain = replace(task.judging, setting=None)
    if not task.steps:
        return replace(task, tests=FileTree({**task.tests, **script}), judging=plain)
    step = replace(task.steps[0], tests=FileTree({**task.steps[0].tests, **script}))
    return replace(task, steps=(step,), judging=plain)
