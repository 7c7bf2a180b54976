"""A run in which every place that somebody might read holds a mark of its own.

The marks say where they were planted, as ``MARK.split.number.place.``; whoever sees one has read
that place. Attempts are made up: what matters is where their words go.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from milo.core.attempt import Outcome, Status, Timings, Usage
from milo.core.budget import Budget
from milo.core.events import Change
from milo.core.evidence import Brief, Exchange, Proposal, Trace
from milo.core.moves import Consultation, Diagnosis
from milo.core.plan import AgentsPlan, ClusterPlan, RunPlan, StrategyPlan
from milo.core.ports import AttemptJob, AttemptResult, PopulationView, Workshop
from milo.core.task import Image, Judging, Setting, Splits, Step, Suite, Task
from milo.core.tree import FileTree
from milo.testing.landscape import GeneMutator

MARK = re.compile(r"MARK\.[a-z]+\.\d+\.[a-z_]+\.(?:canary-\d+\.)?")
SPLITS = ("search", "validation", "test")
PER_SPLIT = 4
GENES = ("a", "b", "c", "d")
SECRET = "MARK.secret.0.key.canary-0123456789."
VALIDATION_WORDS = "seven quiet rivers meet below the old mill of MARK.validation.0.words."


def mark(split: str, number: int, place: str) -> str:
    return f"MARK.{split}.{number}.{place}."


def marks_in(text: str) -> set[str]:
    """All marks in a text."""
    return set(MARK.findall(text))


def tree(split: str, number: int, place: str) -> FileTree:
    return FileTree.of_texts({f"{place}.txt": mark(split, number, place)})


def task_of(split: str, number: int) -> Task:
    """A task with a mark in every field that holds words or files."""

    def m(place: str) -> str:
        return mark(split, number, place)

    def t(place: str) -> FileTree:
        return tree(split, number, place)

    words = VALIDATION_WORDS if (split, number) == ("validation", 0) else ""
    return Task(
        id=f"{split}-{number}-{m('id')}",
        instruction=f"wants {GENES[number % len(GENES)]} {m('instruction')} {words}",
        family=m("family"),
        workspace=t("workspace"),
        tests=t("tests"),
        solution=t("solution"),
        env={"GIVEN": m("env")},
        setting=Setting(image=None),
        judging=Judging(
            env={"JUDGE": m("judging_env")},
            solution_env={"SOLVE": m("solution_env")},
            setting=Setting(image=Image(context=t("judging_image"))),
        ),
    )


def with_steps(task: Task, split: str, number: int) -> Task:
    """The same task set in one step, whose hidden parts are marked too."""
    step = Step(
        name="one",
        instruction=task.instruction,
        files=tree(split, number, "step_files"),
        tests=tree(split, number, "step_tests"),
        solution=tree(split, number, "step_solution"),
        verifier_env={"V": mark(split, number, "step_env")},
    )
    return replace(task, tests=FileTree(), solution=FileTree(), steps=(step,))


def marked_suite() -> Suite:
    tasks = {(s, n): task_of(s, n) for s in SPLITS for n in range(PER_SPLIT)}
    ids = {s: tuple(tasks[s, n].id for n in range(PER_SPLIT)) for s in SPLITS}
    return Suite(name="marked", tasks={t.id: t for t in tasks.values()}, splits=Splits(**ids), k=1)


TRACE_PLACES = ("stdout", "stderr", "changed", "report", "request", "reply", "detail")


@dataclass(kw_only=True)
class MarkedRunner:
    """Implements `AttemptRunner`: every attempt fails, with a mark in each part of its trace."""

    ran: list[str] = field(default_factory=list)

    async def run(self, job: AttemptJob) -> AttemptResult:
        """One made-up attempt."""
        split, number = job.task.id.split("-")[0], int(job.task.id.split("-")[1])
        self.ran.append(job.task.id)

        def m(place: str) -> str:
            return mark(split, number, place)

        exchange = Exchange(
            request={"messages": [{"role": "user", "content": m("request")}]},
            response={"choices": [{"message": {"content": m("reply")}}]},
            status=200,
            seconds=0.1,
        )
        solved = number == 0
        outcome = Outcome(
            key=job.key,
            status=Status.COMPLETED,
            reward=float(solved),
            resolved=solved,
            usage=Usage(uncached_input=10 + len(self.ran) % 3, output=5, calls=1),
            timings=Timings(agent_s=1.0),
            detail=m("detail"),
        )
        trace = Trace(
            exchanges=(exchange,),
            stdout=f"{m('stdout')} {SECRET}",
            stderr=m("stderr"),
            exit_code=0,
            changed={"out.txt": m("changed")},
            report=m("report"),
            verifier_output=m("verifier_output"),
        )
        return AttemptResult(outcome=outcome, trace=trace)

    async def smoke(self, harness: object) -> str:
        """Every harness starts."""
        return ""


@dataclass(kw_only=True)
class Onlooker:
    """Implements `Mutator`: remembers what it is given; its first child of a round breaks the rule.

    Its own words bear a mark of its island, so that another island's eyes can be told.
    """

    name: str
    seen: list[Brief] = field(default_factory=list)

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """A child that holds a held-out task's words, then an honest one."""
        self.seen.append(brief)
        made = await GeneMutator(genes=GENES).propose(brief, workshop)
        number = brief.island.removeprefix("i")
        told = f"MARK.island.{number}.change."
        texts = {"main.py": f"import json\n# {brief.seed}\n# {told}\n"}
        if not brief.error:
            texts["main.py"] += f"# {VALIDATION_WORDS}\n"
        return Proposal(
            tree=made.tree.with_texts(texts),
            change=Change(title=told, diagnosis=told, hypothesis=told),
        )


@dataclass(kw_only=True)
class Watcher:
    """Implements `Orchestrator`: remembers what it is shown and moves nothing."""

    seen: list[tuple[PopulationView, str]] = field(default_factory=list)

    async def consult(self, view: PopulationView, island: str) -> Consultation:
        """Healthy."""
        self.seen.append((view, island))
        return Consultation(
            island=island,
            round=view.topology[island].round,
            diagnosis=Diagnosis.HEALTHY,
            words="nothing to do",
        )


def marked_plan() -> RunPlan:
    return RunPlan(
        run="marked",
        seed=3,
        strategy=StrategyPlan(patience=1, islands=2),
        agents=AgentsPlan(mutators=("one", "two")),
        budget=Budget(rounds=3),
        cluster=ClusterPlan(slots=4),
    )


def places(marks: Collection[str]) -> set[tuple[str, str]]:
    """(split, place) of marks, whatever their number."""
    return {(parts[1], parts[3]) for parts in (m.split(".") for m in marks)}
