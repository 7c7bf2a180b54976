"""Hostile mutators: their children are sent back before an attempt is paid, honest ones scored.

Each is a mutator in a whole run with the real preflight and made-up attempts.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from marked_world import MarkedRunner

import milo
from milo.core.attempt import Usage
from milo.core.budget import Budget
from milo.core.errors import ModelError
from milo.core.events import CandidateJudged, CandidateProposed, Change, Verdict
from milo.core.evidence import Brief, Exchange, Proposal
from milo.core.harness import Harness
from milo.core.plan import AgentsPlan, ClusterPlan, RunPlan, StrategyPlan, SuitePlan
from milo.core.ports import Workshop
from milo.core.task import Splits, Suite, Task
from milo.core.tree import File, FileTree
from milo.runtime.driver import Driver, Watcher
from milo.runtime.parts import HostParts
from milo.runtime.seeding import Seed
from milo.runtime.stage import InlineStage
from milo.search.generality import GeneralityIndex
from milo.search.rules import RulesOrchestrator
from milo.suites.suite import load_suite
from milo.testing.fake_parts import FakeParts, no_model
from milo.testing.memory_records import MemoryRecords
from milo.testing.sorting import harness_of

KEY = "canary-mutator-key-77120"
WORDS = "Copy every ledger of the northern office into one table and name the three largest debtors"
RIVERS = "List the seven quiet rivers that meet below the old mill and order them by their length"
MANIFEST = 'name = "red"\nentry = "python3 main.py"\neditable = ["main.py"]\n'


def task(split: str, number: int) -> Task:
    words = {"search": WORDS, "validation": RIVERS}.get(split, f"Do the {number}th thing.")
    nth = number + {"search": 0, "validation": 20, "test": 40}[split]
    hidden = f'{{"value": {41_000 + 137 * nth}, "mark": "q7w6e5r4t3{nth}z"}}'
    return Task(
        id=f"{split}-{number}-ledgers",
        instruction=f"{words}, case {number}.",
        tests=FileTree.of_texts({"expected.json": hidden}),
    )


def suite() -> Suite:
    tasks = {s: [task(s, n) for n in range(6)] for s in ("search", "validation", "test")}
    splits = Splits(**{s: tuple(t.id for t in made) for s, made in tasks.items()})
    known = {t.id: t for made in tasks.values() for t in made}
    return Suite(name="ledgers", tasks=known, splits=splits, k=1)


Edit = Callable[[FileTree], FileTree]


def adding(text: str, **files: bytes) -> Edit:
    def edit(tree: FileTree) -> FileTree:
        made = tree.with_texts({"main.py": tree.text("main.py") + text + "\n"})
        return FileTree({**made, **{name: File(data) for name, data in files.items()}})

    return edit


@dataclass(kw_only=True)
class Scripted:
    """Implements `Mutator`: always the same edit, made unique by the seed where it must be."""

    edit: Edit
    name: str = "scripted"

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """The edited parent."""
        tree = self.edit(brief.parents[0].harness.tree)
        return Proposal(tree=tree, change=Change(title="an edit"))


def outside(tree: FileTree) -> FileTree:
    return FileTree({**tree, "../../etc/cron.d/x": File(b"* * * * *")})


HOSTILE: dict[str, tuple[Edit, str]] = {
    "an expected value": (adding("x = 'q7w6e5r4t33z'"), "the value"),
    "an expected value in pieces": (adding("x = 'q7w6e5' + 'r4t33z'"), "the value"),
    "a table of short answers": (
        adding("x = {0: 41000, 1: 41137, 2: 41274, 3: 41411}"),
        "expected values of 4 tasks",
    ),
    "a task's id": (adding("x = 'search-3-ledgers' in task"), "the id"),
    "a task's wording": (adding(f"# {WORDS}"), "the words"),
    "a wording packed": (
        adding(f"x = {base64.b64encode(gzip.compress(WORDS.encode(), mtime=0)).decode()!r}"),
        "the words",
    ),
    "a hash of an instruction": (
        adding(f"x = {hashlib.sha256(task('search', 2).instruction.encode()).hexdigest()!r}"),
        "a hash of the instruction",
    ),
    "a held-out task's wording": (adding(f"# {RIVERS}"), "held out"),
    "data that nobody can read": (
        adding("", weights=hashlib.shake_256(b"w").digest(4000)),
        "weights",
    ),
    "a locked file": (
        lambda tree: tree.with_texts({"other.py": "print(1)\n"}),
        "changed other.py, but the manifest allows edits of main.py",
    ),
    "a manifest that unlocks all": (
        lambda tree: tree.with_texts({"harness.toml": MANIFEST.replace('"main.py"]', '"**"]')}),
        "changed harness.toml",
    ),
    "a manifest that is none": (lambda tree: tree.with_texts({"harness.toml": "x"}), "valid TOML"),
    "nothing": (lambda tree: tree, "nothing was changed"),
    "the run's key": (adding(f"x = {KEY!r}"), "a secret of the run's owner: main.py"),
    "a file outside the tree": (outside, "a normalised relative path inside the tree"),
}


def run_with(edit: Edit, rounds: int = 1) -> tuple[MemoryRecords, MarkedRunner]:
    records, runner = MemoryRecords(), MarkedRunner()
    parts = FakeParts(
        plan=RunPlan(
            run="red",
            strategy=StrategyPlan(islands=1, mutation_tries=2),
            agents=AgentsPlan(mutators=("scripted",)),
            budget=Budget(rounds=rounds),
            cluster=ClusterPlan(slots=4),
        ),
        the_suite=suite(),
        records=records,
        runner=runner,  # type: ignore[arg-type]
        mutators={"scripted": Scripted(edit=edit)},
        the_orchestrator=RulesOrchestrator(),
        host_parts=HostParts,
        the_secrets=(KEY,),
    )
    seed = harness_of("import sys\nprint('hello')\n", **{"harness.toml": MANIFEST})
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    stage = InlineStage(parts)
    asyncio.run(Driver(parts, stage, [Seed(name="s", harness=seed)], watcher).run())
    return records, runner


def events_of(records: MemoryRecords, kind: type, candidate: str) -> list[object]:
    found = (r.event for r in records.journal if isinstance(r.event, kind))
    return [event for event in found if getattr(event, "candidate", "") == candidate]


@pytest.mark.parametrize("way", HOSTILE)
def test_a_hostile_child_is_invalid_with_the_reason_and_costs_no_attempt(way: str) -> None:
    edit, reason = HOSTILE[way]
    records, runner = run_with(edit)
    (judged,) = events_of(records, CandidateJudged, "i1.1")
    assert isinstance(judged, CandidateJudged)
    assert judged.verdict is Verdict.INVALID
    assert reason in judged.reason
    (proposed,) = events_of(records, CandidateProposed, "i1.1")
    assert isinstance(proposed, CandidateProposed)
    assert proposed.harness == ""
    assert len(proposed.sent_back) == 2, "it was told why, and could mend it"
    seed_alone = len(suite().tasks)
    assert len(runner.ran) == seed_alone, "only the seed was scored"
    assert KEY not in repr(records.journal)


def test_a_held_out_task_is_named_to_the_owner_and_not_to_the_mutator() -> None:
    records, _ = run_with(HOSTILE["a held-out task's wording"][0])
    (proposed,) = events_of(records, CandidateProposed, "i1.1")
    assert isinstance(proposed, CandidateProposed)
    assert "rivers" in proposed.sent_back[0] and "validation-0-ledgers" in proposed.sent_back[0]
    for shown in (proposed.change.diagnosis, proposed.change.title):
        assert "rivers" not in shown and "validation" not in shown


HONEST = {
    "a prompt": "SYSTEM = 'Read the task twice, copy what it names, and check what you wrote.'",
    "a parser": "import json\ndef parse(text):\n    return json.loads(text[text.index('{'):])",
    "limits": "LIMITS = {'steps': 12, 'chars': 4096, 'seconds': 41000}",
    "a mark of its own": "TOKEN = 'abc123def456ghi7'",
    "a shell command": "COMMAND = 'ls -la && ' + 'cat ' + 'notes.txt'",
}


@pytest.mark.parametrize("way", HONEST)
def test_an_honest_child_is_scored(way: str) -> None:
    records, runner = run_with(adding(HONEST[way]))
    (proposed,) = events_of(records, CandidateProposed, "i1.1")
    assert isinstance(proposed, CandidateProposed)
    assert proposed.harness and proposed.sent_back == ()
    assert len(runner.ran) > len(suite().tasks)


def test_a_mutator_that_returns_no_proposal_costs_its_child_and_not_the_run() -> None:
    @dataclass
    class Nothing:
        name: str = "scripted"

        async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
            return None  # type: ignore[return-value]

    mutator = Nothing()
    records, runner = MemoryRecords(), MarkedRunner()
    parts = FakeParts(
        plan=RunPlan(
            run="red",
            strategy=StrategyPlan(islands=1, mutation_tries=1),
            agents=AgentsPlan(mutators=("scripted",)),
            budget=Budget(rounds=1),
        ),
        the_suite=suite(),
        records=records,
        runner=runner,  # type: ignore[arg-type]
        mutators={"scripted": mutator},
        the_orchestrator=RulesOrchestrator(),
        host_parts=HostParts,
    )
    seed = harness_of("print(1)\n")
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    driver = Driver(parts, InlineStage(parts), [Seed(name="s", harness=seed)], watcher)
    asyncio.run(driver.run())
    (judged,) = events_of(records, CandidateJudged, "i1.1")
    assert isinstance(judged, CandidateJudged)
    assert judged.verdict is Verdict.INVALID
    assert "a Proposal" in judged.reason


def test_a_key_that_a_mutator_says_reaches_no_later_brief() -> None:
    """What was sent back and why is told to the next mutator, and so to its provider."""

    @dataclass
    class Says:
        name: str = "scripted"
        seen: list[Brief] = field(default_factory=list)

        async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
            self.seen.append(brief)
            if not brief.error:
                raise ValueError(f"refused: {KEY}")
            tree = brief.parents[0].harness.tree
            main = f"{tree.text('main.py')}x{brief.seed} = 1\n"
            change = Change(title=KEY, diagnosis=KEY, hypothesis=KEY)
            return Proposal(tree=tree.with_texts({"main.py": main}), change=change)

    says = Says()
    records = MemoryRecords()
    parts = FakeParts(
        plan=RunPlan(
            run="red",
            strategy=StrategyPlan(islands=1, mutation_tries=2),
            agents=AgentsPlan(mutators=("scripted",)),
            budget=Budget(rounds=3),
        ),
        the_suite=suite(),
        records=records,
        runner=MarkedRunner(),  # type: ignore[arg-type]
        mutators={"scripted": says},
        the_orchestrator=RulesOrchestrator(),
        host_parts=HostParts,
        the_secrets=(KEY,),
    )
    seed = Seed(name="s", harness=harness_of("print(1)\n"))
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    asyncio.run(Driver(parts, InlineStage(parts), [seed], watcher).run())
    assert len(says.seen) == 6
    assert "[redacted]" in repr(says.seen) and KEY not in repr(says.seen)
    assert KEY not in repr(records.journal) and KEY not in repr(records.harnesses)


class Judge:
    """Stands in for the judge's model: refuses what a script finds in the patch."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    async def __call__(
        self, scope: str, messages: Sequence[Mapping[str, object]]
    ) -> tuple[str, Usage, tuple[Exchange, ...]]:
        patch = str(messages[-1]["content"])
        self.asked.append((scope, patch))
        usage = Usage(uncached_input=50, output=9, calls=1)
        return self.answer(patch), usage, ()


def judged_run(judge: Judge, edit: Edit) -> MemoryRecords:
    records = MemoryRecords()
    parts = FakeParts(
        plan=RunPlan(
            run="red",
            strategy=StrategyPlan(islands=1, mutation_tries=1, orchestrator=False),
            agents=AgentsPlan(mutators=("scripted",), judge="some/model"),
            budget=Budget(rounds=1),
        ),
        the_suite=suite(),
        records=records,
        runner=MarkedRunner(),  # type: ignore[arg-type]
        mutators={"scripted": Scripted(edit=edit)},
        the_orchestrator=RulesOrchestrator(),
        host_parts=HostParts,
    )

    def caller(mutator: str) -> object:
        return judge if mutator == "judge:some/model" else no_model

    parts.model_caller = caller  # type: ignore[method-assign]
    seed = Seed(name="s", harness=harness_of("print(1)\n"))
    watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
    asyncio.run(Driver(parts, InlineStage(parts), [seed], watcher).run())
    return records


SUBTLE = "if len(task) % 97 == 41: print(sum(ord(c) for c in task[:3]))"


def test_a_judge_refuses_what_no_comparison_of_words_finds() -> None:
    """Logic on the length of a text fits one task, and shares no word with any."""
    judge = Judge(lambda patch: f'{{"specific": {str("% 97" in patch).lower()}, "why": "odd"}}')
    records = judged_run(judge, adding(SUBTLE))
    (event,) = events_of(records, CandidateJudged, "i1.1")
    assert isinstance(event, CandidateJudged)
    assert event.verdict is Verdict.INVALID
    assert "the judge finds task-specific logic: odd" in event.reason
    (proposed,) = events_of(records, CandidateProposed, "i1.1")
    assert isinstance(proposed, CandidateProposed)
    assert proposed.usage.tokens == 59, "what the judge costs is charged with the child"
    assert judge.asked[0][0] == "mutator/i1.1/0/judge"
    honest = judged_run(judge, adding(HONEST["a parser"]))
    (proposed,) = events_of(honest, CandidateProposed, "i1.1")
    assert isinstance(proposed, CandidateProposed)
    assert proposed.harness and proposed.usage.tokens == 59


def test_a_judge_that_is_down_ends_no_search() -> None:
    def down(patch: str) -> str:
        raise ModelError("nobody answers")

    records = judged_run(Judge(down), adding(HONEST["a prompt"]))
    (proposed,) = events_of(records, CandidateProposed, "i1.1")
    assert isinstance(proposed, CandidateProposed)
    assert proposed.harness


def test_the_operators_techniques_pass_as_general_on_the_built_in_tasks() -> None:
    """A check that refused honest edits would end the search of whoever has no model to mutate."""
    index = GeneralityIndex(tuple(load_suite(SuitePlan()).tasks.values()))
    root = Path(milo.__file__).parent
    seed = Harness.from_dir(root / "seeds" / "bare").tree
    techniques = sorted((root / "agents" / "operators" / "techniques").glob("*.py"))
    assert len(techniques) > 5
    for path in techniques:
        child = seed.with_texts({path.name: path.read_text()})
        assert index.scan([seed], child) == (), path.name
    for other in ("plan_act", "tool_loop"):
        grown = Harness.from_dir(root / "seeds" / other).tree
        assert index.scan([seed], grown) == (), other
