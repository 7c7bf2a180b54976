"""Peers as mutators: what becomes a candidate, what is measured only, and what a driver is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from milo.agents.cli.description import Description
from milo.agents.peer import PeerDropped, PeerMutator, nearest
from milo.core.attempt import Usage
from milo.core.errors import ConfigError, SearchOver
from milo.core.evidence import Brief, ParentView, Proposal
from milo.core.fitness import TaskScore
from milo.core.harness import Harness
from milo.core.peering import Measured
from milo.core.ports import Exit, SessionReport
from milo.core.station import AgentJob
from milo.core.tree import FileTree
from milo.testing.peers import Ask as Door
from milo.testing.peers import FakeStation

TASKS = ("t1", "t2", "t3")
ROOT = FileTree.of_texts(
    {"harness.toml": 'name = "h"\nentry = "python3 main.py"\n', "main.py": "SCORE = 0\n"}
)
ABOUT = Description.model_validate(
    {"name": "peer", "title": "Peer", "wire": "chat", "command": ["python3", "drive.py"]}
)
Ask = Callable[..., Awaitable[Mapping[str, object]]]
Driver = Callable[[Ask], Awaitable[None]]


@dataclass
class FakeWorkshop:
    """Measures by what the source says: every task scores SCORE; `refuses` names a bad text."""

    refuses: str = "never"
    scope: str = "mutator/i1.1/0"
    usage: Usage = field(default_factory=Usage)
    measured: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    async def measure(self, tree: FileTree, tasks: Sequence[str]) -> Measured:
        text = tree.text("main.py")
        if self.refuses in text:
            return Measured(refusal="the smoke test fails")
        self.measured.append((text, tuple(tasks)))
        value = float(text.split()[-1])
        score = TaskScore(n=1, reward=value, resolved=int(value), tokens=10, latency_s=1.0)
        return Measured(scores=dict.fromkeys(tasks, score))

    async def smoke(self, tree: FileTree) -> str:
        return ""

    async def complete(self, messages: object) -> tuple[str, Usage]:
        raise AssertionError("a peer has a model of its own")

    async def converse(self, messages: object, tools: object) -> tuple[object, Usage]:
        raise AssertionError("a peer has a model of its own")

    def add(self, report: SessionReport) -> None:
        self.usage = self.usage + report.usage

    async def shell(self, tree: FileTree, command: str, timeout_s: float) -> tuple[Exit, FileTree]:
        raise AssertionError("a peer has a sandbox of its own")


def brief(*known: FileTree, round_: int = 1, error: str = "") -> Brief:
    """What the island shows: the root as parent, and the digests of its candidates."""
    score = TaskScore(n=1, reward=0.0, resolved=0, tokens=10, latency_s=1.0)
    view = ParentView(
        candidate="i1.0", harness=Harness.from_tree(ROOT, "h"), scores=dict.fromkeys(TASKS, score)
    )
    return Brief(
        island="i1",
        round=round_,
        parents=(view,),
        snapshot=(),
        seed=7,
        error=error,
        forbidden_digests=frozenset(tree.digest for tree in (ROOT, *known)),
    )


def tree(score: float) -> FileTree:
    return ROOT.with_texts({"main.py": f"SCORE = {score:g}\n"})


def text(score: float) -> str:
    return f"SCORE = {score:g}\n"


@dataclass
class Scene:
    """A peer at work, and what was told to its driver."""

    driver: Driver
    code: int = 0
    workshop: FakeWorkshop = field(default_factory=FakeWorkshop)

    def __post_init__(self) -> None:
        async def driving(door: Door, job: AgentJob) -> None:
            async def ask(said: str, tasks: Sequence[str] = TASKS) -> Mapping[str, object]:
                asked = {"files": {"main.py": said}, "tasks": list(tasks), "note": said}
                return await door(asked)

            await self.driver(ask)

        self.station = FakeStation(driving, self.code)
        self.mutator = PeerMutator(ABOUT, "peer:m", self.station)

    async def propose(self, *known: FileTree, round_: int = 1, error: str = "") -> Proposal:
        self.workshop.scope = f"mutator/i1.{round_}/0"
        return await self.mutator.propose(brief(*known, round_=round_, error=error), self.workshop)


async def test_a_candidate_on_the_whole_search_set_is_the_child_and_is_answered_when_scored() -> (
    None
):
    told: list[Mapping[str, object]] = []

    async def driver(ask: Ask) -> None:
        told.append(await ask(text(1)))
        told.append(await ask(text(0.5)))

    scene = Scene(driver)
    first = await scene.propose()
    assert first.tree == tree(1) and not told and not scene.workshop.measured
    second = await scene.propose(tree(1), round_=2)
    assert told[0]["accuracy"] == 1.0 and told[0]["refused"] == ""
    assert scene.workshop.measured == [(text(1), TASKS)], "known: asked for on record only"
    assert second.tree == tree(0.5)
    await scene.mutator.close()
    assert scene.station.ended


async def test_what_is_known_is_answered_at_once() -> None:
    told: list[Mapping[str, object]] = []

    async def driver(ask: Ask) -> None:
        told.append(await ask("SCORE = 0\n", ["t2"]))
        await ask(text(1))

    scene = Scene(driver)
    assert (await scene.propose()).tree == tree(1)
    assert told[0]["scores"] == {"t2": 0.0}
    await scene.mutator.close()


async def test_a_candidate_that_the_peer_gives_up_is_on_record_as_dropped() -> None:
    async def driver(ask: Ask) -> None:
        await ask(text(0.25), ["t1"])
        await ask(text(1))

    scene = Scene(driver)
    with pytest.raises(PeerDropped, match=r"by its own rule: 0\.250 on 1 search tasks"):
        await scene.propose()
    assert (await scene.propose(error="dropped")).tree == tree(1)
    await scene.mutator.close()


@pytest.mark.parametrize("rest", [["t2", "t3"], ["t1", "t2", "t3"]])
async def test_a_candidate_that_the_peer_goes_on_with_is_the_child(rest: list[str]) -> None:
    async def driver(ask: Ask) -> None:
        await ask(text(1), ["t1"])
        await ask(text(1), rest)

    scene = Scene(driver)
    assert (await scene.propose()).tree == tree(1)
    await scene.mutator.close()


async def test_a_refused_child_is_told_with_the_reason_and_scores_nothing() -> None:
    told: list[Mapping[str, object]] = []

    async def driver(ask: Ask) -> None:
        told.append(await ask(text(1)))
        await ask(text(0.5))

    scene = Scene(driver)
    await scene.propose()
    await scene.propose(error="it holds task-specific logic")
    assert told == [{**told[0], "refused": "it holds task-specific logic", "accuracy": 0.0}]
    await scene.mutator.close()


async def test_a_candidate_that_leads_out_of_the_harness_is_refused() -> None:
    told: list[Mapping[str, object]] = []

    async def driver(ask: Ask) -> None:
        door = scene.station.job.doors["/peer/evaluate"]  # type: ignore[union-attr]
        told.append(await door({"files": {"../main.py": "x"}, "tasks": list(TASKS)}))
        await ask(text(1))

    scene = Scene(driver)
    await scene.propose()
    assert "../main.py" in str(told[0]["refused"])
    await scene.mutator.close()


async def test_calls_are_counted_for_the_candidate_that_they_led_to() -> None:
    async def driver(ask: Ask) -> None:
        scene.station.session.call(100)
        await ask(text(1))
        scene.station.session.call(7)
        await ask(text(0.5))

    scene = Scene(driver)
    assert (await scene.propose()).usage.tokens == 100
    assert (await scene.propose(tree(1), round_=2)).usage.tokens == 7
    assert sorted(scene.station.session.spent) == ["mutator/i1.1/0", "mutator/i1.2/0"]
    await scene.mutator.close()


@pytest.mark.parametrize(("code", "words"), [(0, "it finished"), (3, "with code 3: it broke")])
async def test_a_driver_that_ends_ends_the_search_with_its_words(code: int, words: str) -> None:
    async def driver(ask: Ask) -> None:
        await asyncio.sleep(0)

    scene = Scene(driver, code)
    with pytest.raises(SearchOver, match=words):
        await scene.propose()


async def test_a_peer_that_asks_for_nothing_new_for_ever_has_ended_its_search() -> None:
    async def driver(ask: Ask) -> None:
        while True:
            await ask("SCORE = 0\n", ["t1"])

    scene = Scene(driver)
    with pytest.raises(SearchOver, match="nothing new"):
        await scene.propose()
    await scene.mutator.close()


async def test_the_driver_finds_the_source_and_the_search_tasks_and_no_manifest() -> None:
    async def driver(ask: Ask) -> None:
        await ask(text(1))

    scene = Scene(driver)
    await scene.propose()
    assert scene.station.job is not None
    given = scene.station.job.workspace
    about = json.loads(given.text("peer.json"))
    assert about["tasks"] == list(TASKS) and about["files"] == ["main.py"]
    assert sorted(given) == ["harness/main.py", "peer.json"]
    await scene.mutator.close()


async def test_a_workshop_that_does_not_measure_is_refused() -> None:
    class Plain:
        usage = Usage()

    async def driver(ask: Ask) -> None:
        await ask(text(1))

    scene = Scene(driver)
    with pytest.raises(ConfigError, match="a workshop that measures"):
        await scene.mutator.propose(brief(), Plain())  # type: ignore[arg-type]


def test_the_parent_is_the_candidate_with_the_fewest_differing_lines() -> None:
    one = ROOT.with_texts({"main.py": "a\nb\nc\n"})
    two = ROOT.with_texts({"main.py": "a\nx\ny\n"})
    kept = {t.digest: t for t in (one, two)}
    assert nearest(ROOT.with_texts({"main.py": "a\nb\nc\nd\n"}), kept) == one.digest
    assert nearest(ROOT.with_texts({"main.py": "a\nx\ny\nd\n"}), kept) == two.digest


async def test_a_child_names_what_it_was_made_from() -> None:
    async def driver(ask: Ask) -> None:
        await ask(text(1))
        await ask("SCORE = 0\nSCORE = 1\nMORE = 1\n")

    scene = Scene(driver)
    assert (await scene.propose()).made_from == ROOT.digest
    assert (await scene.propose(tree(1), round_=2)).made_from in (ROOT.digest, tree(1).digest)
    await scene.mutator.close()
