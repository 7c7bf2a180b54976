"""The peers themselves, as installed here: whole runs on the built-in suite over scripted models.

Each test is skipped with the reason where a peer is not installed (`milo peers install`).
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cli_scene import alive_with
from peer_scene import BETTER, SEEDS, proposer, solver

from milo.agents.cli.description import load
from milo.agents.peer import PEERS
from milo.app.agents import installed
from milo.app.cli import main
from milo.app.compose import AppParts, SystemClock
from milo.app.config import compose
from milo.app.launch import load_seeds
from milo.app.packages import programs_folder
from milo.core.events import Verdict
from milo.runtime.driver import Driver, Ending, Watcher
from milo.runtime.stage import InlineStage
from milo.store import RunReader, RunStore, encode_plan

ROUNDS = 2

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]


def words(name: str, seed: str, *more: str) -> list[str]:
    return [
        f"strategy={name}",
        f"seeds={SEEDS / seed}",
        "suite=deskwork",
        "suite.search=6",
        "suite.validation=4",
        "suite.test=6",
        "suite.k=1",
        "model=openai/frozen",
        "mutators.model=openai/proposer",
        "tracking=off",
        "cluster.slots=4",
        *more,
    ]


def run(folder: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Ending, int]:
    """A whole run in this process; how it ended, and the tokens that its proposer has seen."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    plan = replace(compose(asked), run=str(folder))
    with proposer() as thinking, solver(plan) as frozen:
        monkeypatch.setenv("OPENAI_BASE_URL", thinking.base_url)
        plan = replace(plan, model=replace(plan.model, base_url=frozen.base_url))
        RunStore.create(folder, folder.name, encode_plan(plan), clock=SystemClock()).close()
        parts = AppParts(plan=plan, path=folder)
        watcher = Watcher(on_records=lambda _: None, on_load=lambda *_: None)
        driver = Driver(parts, InlineStage(parts), load_seeds(plan), watcher)
        ending = asyncio.run(driver.run())
    return ending, thinking.tally.prompt_tokens + thinking.tally.output_tokens


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if not installed(load(name)):
        pytest.skip(f"{name} is not installed in {programs_folder()} (milo peers install {name})")
    return name


@pytest.mark.parametrize("peer", PEERS, indirect=True)
def test_a_peer_completes_a_run_and_stands_in_the_leaderboard_with_its_tokens(
    peer: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "run"
    ending, seen = run(folder, words(peer, "bare", f"budget.rounds={ROUNDS}"), monkeypatch)
    assert ending.searched, ending.reason
    with RunReader(folder) as reader:
        population, book = reader.population(), reader.calls
        assert book is not None
        source = reader.harnesses.get(population.winner.candidate).tree.text("main.py")
    children = [node for node in population.lineage if node.parents]
    assert len(children) == ROUNDS
    assert {node.mutator for node in children} == {f"{peer}:openai/proposer"}
    assert any(node.verdict is Verdict.ADMITTED for node in children)
    assert BETTER in source, "the winner is what the peer made"
    assert sum(node.usage.tokens for node in population.lineage) == seen > 0
    assert book.spent["mutator"].tokens == seen, "every call was paid once"
    assert main(["compare", str(folder)]) == 0
    table = capsys.readouterr().out
    assert f"\n{peer} " in table and "k tokens" in table
    print(table, file=sys.stderr)
    assert not alive_with(str(programs_folder() / load(peer).place))


@pytest.mark.parametrize("peer", ["gepa_anything", "openevolve", "shinka"], indirect=True)
def test_a_harness_of_several_files_is_one_program_to_a_peer(
    peer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    ending, _ = run(folder, words(peer, "plan_act", "budget.rounds=1"), monkeypatch)
    assert ending.searched, ending.reason
    with RunReader(folder) as reader:
        child = next(node for node in reader.population().lineage if node.parents)
        trees = [reader.harnesses.get(c).tree for c in (child.parents[0], child.candidate)]
    assert set(trees[0].changed_paths(trees[1])) <= {"main.py", "model.py"}
    assert all(compile(trees[1].text(path), path, "exec") for path in ("main.py", "model.py"))
