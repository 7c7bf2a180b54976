"""The verifier: judges the workspace that an attempt left, by Harbor's rules.

Runs after the agent phase has ended and its processes are gone. /logs is emptied but for a
copy of what the agent left in /logs/agent and /logs/artifacts, the task's tests appear
at /tests, ``/tests/test.sh`` runs in the workspace without the gateway; its exit code is ignored.
A verifier of its own runs in a fresh environment instead, with the agent's artifacts. The reward
is /logs/verifier/reward.json (a flat object of finite numbers: its
key ``reward``, else the mean of its values) or, where that is missing, reward.txt (one number).
The number that counts must be finite and in the task's range ([0, 1] where it declares none), of
which it is kept as a share. One that isn't was made so by what the harness left, and is worth 0. A
reward that is missing, empty or no number, and a time-out of the verifier, say nothing about the
harness: there is no reward. Where it is missing because the environment is out of memory or
storage, or can't be worked with any more, that is the harness's work, and worth 0.

To writers of ``test.sh``: the workspace is hostile. Call ``python3 -I /tests/check.py``, for
without ``-I`` (or with ``-m`` or ``-c``) a ``json.py`` or ``sitecustomize.py`` in the workspace
can stand in for the library's. Run code of the workspace in a process of its own, and write
``reward.json`` yourself and last. Words for the mutator go to /logs/verifier/report.txt and hold
no expected answers; the standard output is kept for the run's owner alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from milo.core.attempt import is_reward
from milo.core.ports import Command, Environment, Exit, Sandbox
from milo.core.task import Step, StepReward, Task
from milo.core.tree import File, FileTree
from milo.rollout.staging import Spoiled, collect, judged_in, put

TEST_SCRIPT = "test.sh"
REWARD_JSON = "verifier/reward.json"
REWARD_TEXT = "verifier/reward.txt"
REPORT = "verifier/report.txt"
REPORT_CHARS = 4000
OUTPUT_BYTES = 16 * 1024
REWARD_BYTES = 64 * 1024
REWARD_KEY = "reward"
KEPT_LOGS = ("agent", "artifacts")
KEPT_CHARS = 1024
"""A path that can be read may be too long to be written elsewhere."""
SPACE = ("memory", "storage")
"""Limits that are of the environment: within them the reference was judged."""
UNIT = (0.0, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What the verifier said: a reward in [0, 1], or None and the reason in `detail`.

    An `impossible` reward is a number that can't be one. `rewards` are all that were given, by
    key. `report` is public, `output` is for the run's owner.
    """

    reward: float | None
    rewards: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""
    report: str = ""
    output: str = ""
    seconds: float = 0.0
    impossible: bool = False


async def judge(
    sandbox: Sandbox, environment: Environment, task: Task, owner: str, step: Step | None = None
) -> Judgement:
    """Judge what was left in an environment, there or in one of the verifier's own.

    `step` is the part of the task to judge, where it has parts. No command may be running.
    """
    try:
        return await _judged_there(sandbox, environment, task, owner, step)
    except Spoiled as fault:
        return spoiled(task, str(fault))


async def _judged_there(
    sandbox: Sandbox, environment: Environment, task: Task, owner: str, step: Step | None
) -> Judgement:
    if not task.judging.separate:
        return await verify(environment, task, step)
    kept, declared = await collect(environment, task)
    apart = await sandbox.open(judged_in(task, owner))
    try:
        await put(apart, declared, "/")
        return await verify(apart, task, step, kept)
    finally:
        await apart.close()


async def verify(
    environment: Environment,
    task: Task,
    step: Step | None = None,
    given: FileTree | None = None,
) -> Judgement:
    """Judge the workspace as it is; `given` stands in for what lies in /logs."""
    logs = await environment.logs() if given is None else given
    await environment.clear_logs()
    kept = {path: file for path, file in logs.items() if _is_kept(path)}
    await put(environment, FileTree(kept), "/logs")
    if not task.judging.bundled:
        await environment.mount("/tests", runnable(task.tests if step is None else step.tests))
    limits, own = task.limits, step.verifier_env if step is not None else {}
    ended = await environment.run(
        Command(
            argv=(f"/tests/{TEST_SCRIPT}",),
            timeout_s=limits.verifier_timeout_s if step is None else step.verifier_timeout_s,
            env={**task.env, **task.judging.env, **own},
            output_bytes=OUTPUT_BYTES,
            reach=task.verifier_reach,
            user=task.judging.user,
        )
    )
    found = judged(ended, await environment.logs(), task.reward_range)
    if found.reward is None and ended.limit in SPACE:
        return spoiled(task, f"the verifier was ended at the limit of {ended.limit}", found)
    return found


def spoiled(task: Task, why: str, found: Judgement | None = None) -> Judgement:
    """The judgement of what can't be judged because of what the harness left: worth 0.

    Were it missing, whoever knows that it failed could have another try by leaving such things.
    """
    nothing = Judgement(reward=0.0) if found is None else found
    return replace(nothing, reward=0.0, rewards={REWARD_KEY: task.reward_range[0]}, detail=why)


def _is_kept(path: str) -> bool:
    return path.partition("/")[0] in KEPT_LOGS and len(path) <= KEPT_CHARS


def falls_short(judgement: Judgement, step: Step) -> bool:
    """Whether a step's rewards end the task: below a threshold, or without the key of one."""
    return any(
        judgement.rewards.get(key, float("-inf")) < least for key, least in step.min_reward.items()
    )


def combined(
    judgements: Sequence[Judgement],
    steps: Sequence[Step],
    rule: StepReward,
    span: tuple[float, float] = UNIT,
) -> Judgement:
    """The judgement of a task from those of the steps done; none of them may be missing.

    By Harbor's rules: the mean by key over the steps done, a key that a step lacks being 0 there;
    or the last one's.
    """
    named = list(zip((step.name for step in steps), judgements, strict=False))
    for name, judgement in named:
        if judgement.reward is None:
            return replace(judgement, detail=f"step {name}: {judgement.detail}")
    rewards = judgements[-1].rewards if rule is StepReward.FINAL else _means(judgements)
    reward = _share(_one(rewards), span)
    return Judgement(
        reward=reward if is_reward(reward) else None,
        rewards=rewards,
        detail="" if is_reward(reward) else f"the steps give {_one(rewards)!r}, {_not_in(span)}",
        impossible=not is_reward(reward),
        report="\n".join(f"[{name}] {j.report}" for name, j in named if j.report)[:REPORT_CHARS],
        output="\n".join(f"[{name}]\n{j.output}" for name, j in named),
        seconds=sum(judgement.seconds for judgement in judgements),
    )


def _means(judgements: Sequence[Judgement]) -> Mapping[str, float]:
    keys = sorted({key for judgement in judgements for key in judgement.rewards})
    return {key: sum(j.rewards.get(key, 0.0) for j in judgements) / len(judgements) for key in keys}


def runnable(tests: FileTree) -> FileTree:
    """The tests with an executable ``test.sh``."""
    script = tests.get(TEST_SCRIPT)
    if script is None or script.executable:
        return tests
    return FileTree({**tests, TEST_SCRIPT: File(script.data, True)})


def judged(ended: Exit, logs: FileTree, span: tuple[float, float] = UNIT) -> Judgement:
    """The judgement from how the test ended and the files it left; `span` is the task's range."""
    rewards, detail, impossible = _read(logs, span)
    if ended.limit == "time":
        rewards, impossible = {}, False
        detail = f"the verifier was ended at its limit after {ended.seconds:.1f} s"
    elif not rewards:
        detail = f"{detail} (the verifier ended with code {ended.code})"
    return Judgement(
        reward=_share(_one(rewards), span) if rewards else None,
        rewards=rewards,
        detail=detail,
        impossible=impossible,
        report=logs.text(REPORT)[:REPORT_CHARS] if REPORT in logs else "",
        output=ended.stdout + ended.stderr,
        seconds=ended.seconds,
    )


def read_reward(logs: FileTree, span: tuple[float, float] = UNIT) -> tuple[float | None, str]:
    """The reward and "", or None and what is wrong with the reward files."""
    rewards, detail, _ = _read(logs, span)
    return (_share(_one(rewards), span) if rewards else None), detail


class _Read(NamedTuple):
    """The rewards by key, or none and what is wrong; `impossible` where they are numbers."""

    rewards: Mapping[str, float]
    detail: str = ""
    impossible: bool = False


def _read(logs: FileTree, span: tuple[float, float]) -> _Read:
    name = REWARD_JSON if REWARD_JSON in logs else REWARD_TEXT
    if name not in logs:
        return _Read({}, "no reward file was written")
    if len(logs[name].data) > REWARD_BYTES:
        return _Read({}, f"{name} is too large")
    text = logs.text(name)
    try:
        rewards = _from_json(text) if name == REWARD_JSON else {REWARD_KEY: float(text)}
    except (ValueError, RecursionError, OverflowError) as error:
        return _Read({}, f"{name} holds no reward: {error}")
    if not is_reward(_share(_one(rewards), span)):
        return _Read({}, f"{name} holds {_one(rewards)!r}, {_not_in(span)}", impossible=True)
    return _Read(rewards)


def _share(reward: float, span: tuple[float, float]) -> float:
    """Where a number stands in a range: 0 at its low end, 1 at its high end."""
    low, high = span
    return reward if span == UNIT else (reward - low) / (high - low)


def _not_in(span: tuple[float, float]) -> str:
    return f"not a finite number in [{span[0]:g}, {span[1]:g}]"


def _one(rewards: Mapping[str, float]) -> float:
    """The number that counts: the key ``reward``, else the mean of all."""
    if REWARD_KEY in rewards:
        return rewards[REWARD_KEY]
    return sum(rewards.values()) / len(rewards)


def _from_json(text: str) -> dict[str, float]:
    values = json.loads(text)
    if not isinstance(values, dict) or not values:
        raise ValueError("expected a flat object of numbers")
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"key {key!r} is {type(value).__name__}, not a number")
    return {str(key): float(value) for key, value in values.items()}
