"""Open problems through the real path: sandbox, optimizer, verifier, records, archive; no Ray."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from inline_launcher import InlineLauncher

from milo.app.arena import export_text
from milo.app.arena_runs import found_in, gathered
from milo.app.cli import OK, main
from milo.app.compose import SystemClock
from milo.app.config import compose
from milo.app.numeric import CAPABILITY, equipped
from milo.core.attempt import AttemptKey
from milo.core.events import CandidateJudged, CandidateProposed
from milo.core.harness import Harness
from milo.core.objective import objective_in, steps_in
from milo.core.ports import AttemptJob, AttemptResult, Caps
from milo.core.task import Task
from milo.rollout.local import choose
from milo.rollout.runner import LocalAttemptRunner
from milo.store import RunReader
from milo.suites.arena.harness.seeds import seed_trees
from milo.suites.arena.tasks import generate
from milo.testing.gateways import ScriptedGateway
from milo.testing.sandbox_cases import let_others_pass

OVERLAP = "erdos-min-overlap"
WRONG = '```python\nSCHEDULE = [{"move": "fly"}]\n```'
BETTER = """```python
def shrink(state, seconds: float, part: float = 0.5) -> None:
    state.x = state.landscape.repair(state.x * part)


SCHEDULE = [{"move": "shrink", "part": 0.9}, {"move": "linearise", "radius": 0.1}]
```"""


def random_start(seconds: float) -> Task:
    """A task that starts at random; a constant is a stationary point of every linear model."""
    return generate((OVERLAP,), count=5, seconds=seconds)[f"{OVERLAP}-004"]


class Model:
    """Answers in turn; keeps what it was asked."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.asked.append(prompt)
        return self.replies.pop(0) if self.replies else ""


@pytest.fixture
def model() -> Model:
    return Model(WRONG, BETTER)


@pytest.fixture
async def runner(tmp_path: Path, model: Model) -> AsyncIterator[LocalAttemptRunner]:
    """A runner on the best local sandbox; skipped where it can't show numpy."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    let_others_pass(scratch)
    sandbox = equipped(choose("auto", root=scratch), [random_start(1.0)])
    if CAPABILITY not in sandbox.capabilities:
        pytest.skip(f"{sandbox.description}: numpy can't be shown in it")
    gateway = ScriptedGateway(tmp_path / "g.sock", model)
    await gateway.start()
    yield LocalAttemptRunner(sandbox, gateway, Caps(), "arena-test", SystemClock())
    await gateway.stop()


async def attempt(runner: LocalAttemptRunner, seed: str, task: Task) -> AttemptResult:
    harness = Harness.from_tree(seed_trees(with_model=True)[seed], seed)
    key = AttemptKey(
        harness=harness.digest, task=task.id, task_digest=task.digest, model="m", index=0
    )
    return await runner.run(AttemptJob(key=key, harness=harness, task=task))


async def test_a_seed_improves_a_frozen_construction_and_its_record_says_how_far(
    runner: LocalAttemptRunner,
) -> None:
    result = await attempt(runner, "linear", random_start(25.0))
    assert result.outcome.is_valid, result.outcome.detail
    objective = objective_in(result.trace.report)
    assert objective is not None
    assert objective.problem == OVERLAP
    assert objective.value < 0.385 < objective.start
    gained = (objective.start - objective.value) / (objective.start - objective.target)
    assert result.outcome.reward == pytest.approx(min(1.0, gained))
    # A machine under heavy load may end the program at its limit; what it kept counts.
    steps = steps_in(result.trace.stdout)
    assert [step.value for step in steps] == sorted((s.value for s in steps), reverse=True)
    assert steps[-1].value == pytest.approx(objective.value, rel=1e-9)


async def test_the_reviser_edits_the_optimizer_through_the_gateway_and_its_edit_counts(
    runner: LocalAttemptRunner, model: Model
) -> None:
    """The model's first file names a move that there is not, its second brings one of its own."""
    result = await attempt(runner, "reviser", random_start(60.0))
    assert result.outcome.is_valid, result.outcome.detail
    assert min(result.outcome.usage.calls, len(model.asked)) >= 2
    first, second = model.asked[:2]
    assert "linearise(state: State, seconds: float, radius: float=" in first
    assert "Your last file failed its test" in second
    assert "expected moves among" in second
    schedule = result.trace.changed["optimizer/schedule.py"]
    assert "def shrink" in schedule
    assert "revision kept" in result.trace.stdout
    objective = objective_in(result.trace.report)
    assert objective is not None
    assert objective.value < objective.start


def test_a_run_without_a_model_keeps_what_it_found_with_where_it_came_from(
    workdir: Path, runner: LocalAttemptRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "suite=arena",
        "suite.families=[circle-packing]",
        "suite.search=1",
        "suite.validation=1",
        "suite.test=0",
        "suite.seconds=6",
        "strategy.islands=2",
        "budget.rounds=1",
        "cluster.slots=2",
        "tracking=off",
        "run=runs/one",
    )
    launcher = InlineLauncher()
    assert launcher.launch(compose(words, environ={})) == OK
    (run,) = launcher.launched
    with RunReader(run) as reader:
        events = [record.event for record in reader.records()]
    children = [e for e in events if isinstance(e, CandidateProposed) and e.parents]
    assert {child.mutator for child in children} <= {"arena", "arena-recombine", "arena-tune"}
    assert {e.candidate for e in events if isinstance(e, CandidateJudged)} >= {
        child.candidate for child in children
    }
    assert len(list(found_in(run))) >= 4

    best = gathered(Path("arena"), (Path("runs"),)).archive.best("circle-packing")
    assert best is not None
    assert best.value > 2.0
    assert (best.provenance.source, best.provenance.candidate[:1]) == ("one", "i")
    assert json.loads(export_text("circle-packing", plot=Path("out.svg")).splitlines()[0])
    assert Path("out.svg").read_text().count("<circle") == 2 * 26
    capsys.readouterr()
    assert main(["arena", "curve", "one", "--json"]) == OK
    steps = json.loads(capsys.readouterr().out)["circle-packing"]
    assert steps[-1]["value"] == best.value
