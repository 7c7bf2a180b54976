"""A failure stays a failure: nothing that a harness leaves makes it missing, to be tried again.

Whoever knows that it has failed could else have another try, and another, for nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from milo.core.attempt import Status
from milo.core.ports import AttemptResult
from milo.core.task import Judging, Step, Task
from milo.core.tree import FileTree
from milo.testing.sorting import HONEST, sorting_task

Attempt = Callable[..., Awaitable[AttemptResult]]
pytestmark = pytest.mark.timeout(240)

LOGS = "import os, sys\nlogs = os.environ['MILO_LOGS'] + '/agent/'\n"
SPOILERS = {
    "a log that leaves no room": LOGS + "open(logs + 'x', 'wb').write(bytes(4 << 20))",
    "logs without number": LOGS + "for n in range(20_001): open(f'{logs}{n}', 'w').close()",
    "a log with a line break in its name": LOGS + "open(logs + 'a\\nb', 'w').write('x')",
    "a log with a long path": LOGS
    + "os.chdir(logs)\nfor n in range(19): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
    + "for n in range(150): open('x' * (n + 1), 'w').write('x')",
    "logs that nobody may read": LOGS + "os.mkdir(logs + 'd'); os.chmod(logs + 'd', 0)\n"
    "os.chmod(logs, 0); os.chmod(os.environ['MILO_LOGS'], 0)",
    "a workspace with a long path": "import os\n"
    + "for n in range(19): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
    + "for n in range(150): open('x' * (n + 1), 'w').write('x')",
    "a workspace that nobody may enter": "import os; os.chmod('.', 0)",
    "a workspace full of files": "for n in range(20_001): open(str(n), 'w').close()",
}
_SORTING = sorting_task(delay_s=1.5)
_PATIENT = replace(_SORTING.limits, agent_timeout_s=120.0, verifier_timeout_s=120.0)
SLOW = replace(_SORTING, limits=_PATIENT)
"""The storage is looked at once a second; on a busy machine twenty thousand files take a while."""


def check_failure(result: AttemptResult) -> None:
    outcome = result.outcome
    assert outcome.reward == 0.0, (outcome, result.trace.verifier_output)
    assert not outcome.status.is_infrastructure


@pytest.mark.parametrize("name", SPOILERS)
async def test_what_is_left_behind_hides_no_failure(attempt: Attempt, name: str) -> None:
    check_failure(await attempt(SPOILERS[name], SLOW))


async def test_nor_does_it_in_a_container(contained: Attempt) -> None:
    for main in SPOILERS.values():
        check_failure(await contained(main, SLOW))


@pytest.mark.parametrize("name", ["a log that leaves no room", "a log with a long path"])
async def test_an_honest_answer_counts_whatever_else_is_left(attempt: Attempt, name: str) -> None:
    result = await attempt(HONEST + SPOILERS[name])
    assert (result.outcome.reward, result.outcome.status) == (1.0, Status.COMPLETED)


async def test_artifacts_too_large_to_be_handed_on_are_no_way_out(attempt: Attempt) -> None:
    apart = Judging(separate=True, artifacts=("/workspace/answer.json",))
    task = replace(sorting_task(), judging=apart)
    check_failure(await attempt("open('answer.json', 'wb').write(bytes(5 << 20))", task))
    assert (await attempt(HONEST, task)).outcome.reward == 1.0


async def test_what_stands_in_the_way_of_the_next_step_is_no_way_out(attempt: Attempt) -> None:
    check_failure(await attempt("import os; os.makedirs('second.txt/x')", task_in_steps()))
    assert (await attempt(HONEST, task_in_steps())).outcome.reward == 1.0


def task_in_steps() -> Task:
    """Two steps, of which the second brings a file."""
    task = sorting_task()
    one = Step(name="one", instruction="Sort.", files=task.workspace, tests=task.tests)
    more = FileTree.of_texts({"second.txt": "more"})
    two = replace(one, name="two", files=more)
    return Task(id="steps", instruction="Sort.", steps=(one, two), limits=task.limits)
