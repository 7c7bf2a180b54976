"""Each attack scores 0 and is flagged; its honest twin scores 1 on the very same task, unflagged.

The attacks are listed in `attacks`. They run on bubblewrap, and all of them, with those that only
a container can stop, on the container engine where there is one.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from attacks import (
    ATTACKS,
    BACKGROUND,
    CONTAINER_ONLY,
    EDITS_ITSELF,
    FIFO,
    IN_THE_SYSTEM,
    LOOKS_BACK,
    OWN_HISTORY,
    SHADOWS,
    Attack,
)

from milo.core.attempt import Status, is_telling
from milo.core.ports import AttemptResult
from milo.core.task import Task
from milo.suites.folder import load_folder
from milo.testing.sorting import CHECK, HONEST, INSTRUCTION, TEST, sorting_task

Attempt = Callable[..., Awaitable[AttemptResult]]
pytestmark = pytest.mark.timeout(240)


def scored_nothing(result: AttemptResult) -> bool:
    """0, and neither missing nor solved."""
    return result.outcome.reward == 0.0 and not result.outcome.resolved


def check_attack(result: AttemptResult, attack: Attack) -> None:
    trace = result.trace
    assert scored_nothing(result), (result.outcome, trace.verifier_output)
    assert attack.flag in result.outcome.flags, (result.outcome, trace.stdout, trace.stderr)
    for word in ("FOUND", "STOLEN", "FETCHED", "EDITED"):
        assert word not in trace.stdout, trace.stdout


def check_twin(result: AttemptResult) -> None:
    outcome, trace = result.outcome, result.trace
    assert (outcome.reward, outcome.resolved) == (1.0, True), (outcome, trace.stderr)
    assert outcome.status is Status.COMPLETED
    assert not any(map(is_telling, outcome.flags)), outcome.flags


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
async def test_an_attack_scores_nothing_and_is_flagged(attempt: Attempt, attack: Attack) -> None:
    check_attack(await attempt(attack.main, attack.task, **attack.files), attack)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
async def test_its_honest_twin_scores_one(attempt: Attempt, attack: Attack) -> None:
    check_twin(await attempt(attack.twin, attack.task, **attack.files))


@pytest.mark.parametrize("attack", (*ATTACKS, *CONTAINER_ONLY), ids=str)
async def test_in_a_container_too(contained: Attempt, answers: None, attack: Attack) -> None:
    check_attack(await contained(attack.main, attack.task, **attack.files), attack)
    check_twin(await contained(attack.twin, attack.task, **attack.files))


@pytest.fixture
def answers() -> Iterator[None]:
    """The expected answer lies among the host's own system files."""
    folder = Path(IN_THE_SYSTEM)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        pytest.skip(f"answers can't be planted here: {error}")
    (folder / "expected.json").write_text("[1, 2, 3]")
    yield
    shutil.rmtree(folder)


@pytest.mark.parametrize("attack", CONTAINER_ONLY, ids=str)
async def test_what_only_a_container_stops_succeeds_without_one(
    attempt: Attempt, answers: None, attack: Attack
) -> None:
    """If this fails the local sandbox has become stronger: the mark is then to be taken off."""
    assert attack.only_container
    assert (await attempt(attack.main, attack.task)).outcome.reward == 1.0


async def test_a_solution_in_version_control_does_not_come_along(
    attempt: Attempt, tmp_path: Path
) -> None:
    """Task authors leave the repository in which they wrote the solution, with its history."""
    task = task_with_history(tmp_path)
    result = await attempt(LOOKS_BACK, task)
    assert "FOUND" not in result.trace.stdout
    assert scored_nothing(result)
    assert "tried-history" in result.outcome.flags
    check_twin(await attempt(HONEST + OWN_HISTORY, task))


def task_with_history(root: Path) -> Task:
    """A task as its author left it: the answer was committed, then removed."""
    folder = root / "suite" / "sorting-1"
    repository = folder / "environment" / "files"
    repository.mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "task.toml").write_text("[metadata.milo]\nany_base = true\n")
    (folder / "instruction.md").write_text(INSTRUCTION)
    (folder / "environment" / "Dockerfile").write_text(
        "FROM python:3.11-slim\nWORKDIR /workspace\nCOPY files/ /workspace/\n"
    )
    (folder / "tests" / "test.sh").write_bytes(TEST)
    (folder / "tests" / "check.py").write_text(CHECK)
    (folder / "tests" / "expected.json").write_text("[1, 2, 3]")
    (repository / "numbers.json").write_text("[3, 1, 2]")
    (repository / "answer.json").write_text("[1, 2, 3]")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "with the answer")):
        subprocess.run(["git", *words], cwd=repository, check=True)
    (repository / "answer.json").unlink()
    subprocess.run(["git", *who, "commit", "-qam", "without"], cwd=repository, check=True)
    assert (repository / ".git").is_dir()
    return load_folder(root / "suite")["sorting-1"]


async def test_a_background_process_does_not_live_into_the_verification(attempt: Attempt) -> None:
    result = await attempt(HONEST + BACKGROUND, sorting_task(delay_s=0.5))
    assert result.outcome.reward == 1.0, "the answer stays the harness's own"
    assert result.trace.report == ""


async def test_a_harness_cannot_edit_its_own_snapshot(attempt: Attempt) -> None:
    result = await attempt(EDITS_ITSELF)
    assert scored_nothing(result)
    assert "EDITED" not in result.trace.stdout


async def test_a_pipe_in_place_of_the_answer_does_not_hang_the_verifier(attempt: Attempt) -> None:
    result = await attempt(FIFO)
    assert scored_nothing(result)
    assert result.outcome.timings.verifier_s < 5


async def test_another_attempts_workspace_is_out_of_reach(attempt: Attempt, scratch: Path) -> None:
    """The victim holds the right answer while the thief looks for it."""
    victim = HONEST + "import time; time.sleep(1.5)"
    steal = (
        "import glob, shutil\n"
        f"for p in glob.glob('{scratch}/*/workspace/answer.json') + glob.glob('/proc/*/cwd/a*'):\n"
        "    try: shutil.copy(p, 'answer.json'); print('STOLEN')\n"
        "    except (OSError, shutil.SameFileError): pass\n"
    )
    loot, honest = await asyncio.gather(
        attempt("import time; time.sleep(.5)\n" + steal), attempt(victim)
    )
    assert scored_nothing(loot)
    assert "STOLEN" not in loot.trace.stdout
    assert "tried-other-processes" in loot.outcome.flags
    assert honest.outcome.reward == 1.0


async def test_a_token_dies_with_its_attempt(attempt: Attempt) -> None:
    """A harness may hand its token on, through a file or its own output: it opens nothing then."""
    first = await attempt("import os; print(os.environ['OPENAI_API_KEY'])")
    token = first.trace.stdout.strip()
    use = (
        "import json, os, urllib.request\n"
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "said = [{'role': 'user', 'content': 'x'}]\n"
        "body = json.dumps({'model': 'm', 'messages': said}).encode()\n"
        f"head = {{'Authorization': 'Bearer {token}', 'Content-Type': 'application/json'}}\n"
        "urllib.request.urlopen(urllib.request.Request(url, body, head))\n"
    )
    second = await attempt(use)
    assert scored_nothing(second)
    assert "401" in second.trace.stderr
    assert second.outcome.usage.calls == 0


async def test_nothing_is_left_on_the_host(attempt: Attempt, scratch: Path) -> None:
    for main in (BACKGROUND, FIFO, SHADOWS):
        await attempt(main)
    assert list(scratch.iterdir()) == []
