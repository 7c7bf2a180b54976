"""The verifier: judges the workspace that an attempt left, by Harbor's rules.

Runs after the agent phase has ended and its processes are gone. /logs is emptied, the task's
tests appear at /tests, ``/tests/test.sh`` runs in the workspace without the gateway; its exit
code is ignored. The reward is /logs/verifier/reward.json (a flat object of finite numbers: its
key ``reward``, else the mean of its values) or, where that is missing, reward.txt (one number).
A reward that is missing, empty, not finite or outside [0, 1], and a time-out of the verifier,
say nothing about the harness: there is no reward.

To writers of ``test.sh``: the workspace is hostile. Call ``python3 -I /tests/check.py``, for
without ``-I`` (or with ``-m`` or ``-c``) a ``json.py`` or ``sitecustomize.py`` in the workspace
can stand in for the library's. Run code of the workspace in a process of its own, and write
``reward.json`` yourself and last. Words for the mutator go to /logs/verifier/report.txt and hold
no expected answers; the standard output is kept for the run's owner alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from milo.core.attempt import is_reward
from milo.core.ports import Command, Environment, Exit
from milo.core.task import Task
from milo.core.tree import File, FileTree

TEST_SCRIPT = "test.sh"
REWARD_JSON = "verifier/reward.json"
REWARD_TEXT = "verifier/reward.txt"
REPORT = "verifier/report.txt"
REPORT_CHARS = 4000
OUTPUT_BYTES = 16 * 1024
REWARD_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What the verifier said: a reward in [0, 1], or None and the reason in `detail`.

    `report` is public, `output` is for the run's owner.
    """

    reward: float | None
    detail: str = ""
    report: str = ""
    output: str = ""
    seconds: float = 0.0


async def verify(environment: Environment, task: Task) -> Judgement:
    """Judge the workspace as it is. No command may be running in the environment."""
    await environment.clear_logs()
    await environment.mount("/tests", runnable(task.tests))
    ended = await environment.run(
        Command(
            argv=(f"/tests/{TEST_SCRIPT}",),
            timeout_s=task.limits.verifier_timeout_s,
            env=task.env,
            output_bytes=OUTPUT_BYTES,
        )
    )
    return judged(ended, await environment.logs())


def runnable(tests: FileTree) -> FileTree:
    """The tests with an executable ``test.sh``."""
    script = tests.get(TEST_SCRIPT)
    if script is None or script.executable:
        return tests
    return FileTree({**tests, TEST_SCRIPT: File(script.data, True)})


def judged(ended: Exit, logs: FileTree) -> Judgement:
    """The judgement from how the test ended and the files it left."""
    reward, detail = read_reward(logs)
    if ended.limit == "time":
        reward, detail = None, f"the verifier was ended at its limit after {ended.seconds:.1f} s"
    elif reward is None:
        detail = f"{detail} (the verifier ended with code {ended.code})"
    return Judgement(
        reward=reward,
        detail=detail,
        report=logs.text(REPORT)[:REPORT_CHARS] if REPORT in logs else "",
        output=ended.stdout + ended.stderr,
        seconds=ended.seconds,
    )


def read_reward(logs: FileTree) -> tuple[float | None, str]:
    """The reward and "", or None and what is wrong with the reward files."""
    name = REWARD_JSON if REWARD_JSON in logs else REWARD_TEXT
    if name not in logs:
        return None, "no reward file was written"
    if len(logs[name].data) > REWARD_BYTES:
        return None, f"{name} is too large"
    text = logs.text(name)
    try:
        value = _from_json(text) if name == REWARD_JSON else float(text)
    except (ValueError, RecursionError) as error:
        return None, f"{name} holds no reward: {error}"
    if not is_reward(value):
        return None, f"{name} holds {value!r}, not a finite number in [0, 1]"
    return float(value), ""


def _from_json(text: str) -> float:
    values = json.loads(text)
    if not isinstance(values, dict) or not values:
        raise ValueError("expected a flat object of numbers")
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"key {key!r} is {type(value).__name__}, not a number")
    if "reward" in values:
        return float(values["reward"])
    return sum(values.values()) / len(values)
