"""Tasks in steps, healthchecks and verifiers of their own, over a sandbox in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from milo.core.attempt import AttemptKey, Status, Usage
from milo.core.errors import MiloError, TaskError
from milo.core.ports import (
    AttemptJob,
    AttemptResult,
    Caps,
    Command,
    EnvironmentSpec,
    Exit,
    SessionReport,
)
from milo.core.task import Healthcheck, Judging, Limits, Network, Setting, Step, StepReward, Task
from milo.core.tree import FileTree
from milo.rollout.runner import LocalAttemptRunner, check_needs
from milo.rollout.staging import until_healthy
from milo.rollout.verifier import Judgement, combined
from milo.testing.fake_sandbox import FakeEnvironment, FakeSandbox
from milo.testing.gateways import FixedClock, ScriptedGateway
from milo.testing.sorting import harness_of, sorting_task

REPORT = SessionReport(usage=Usage(uncached_input=7, output=3, calls=1), exchanges=())
TESTS = FileTree.of_texts({"test.sh": "#!/bin/sh\n"})


def step(name: str, **more: object) -> Step:
    return replace(Step(name=name, instruction=f"do {name}", tests=TESTS), **more)  # type: ignore[arg-type]


def in_steps(*steps: Step, **more: object) -> Task:
    return replace(Task(id="t", instruction="all", steps=steps), **more)  # type: ignore[arg-type]


class Scene:
    """Gives each step the rewards of a script; the harness ends as another script says."""

    def __init__(self, *rewards: str, exits: tuple[Exit, ...] = ()) -> None:
        self.rewards = list(rewards)
        self.exits = list(exits)
        self.told: list[str] = []
        self.seen_logs: list[dict[str, str]] = []

    def __call__(self, environment: FakeEnvironment, command: Command) -> Exit:
        if command.argv[0].startswith("/tests/"):
            environment.log_files["verifier/reward.json"] = self.rewards.pop(0)
            return Exit(code=0, seconds=2)
        if command.gateway:
            self.told.append(environment.mounts["/task"].text("instruction.md"))
            self.seen_logs.append(dict(environment.log_files))
            return self.exits.pop(0) if self.exits else Exit(code=0, seconds=1.5)
        return Exit(code=0, seconds=0)


async def attempted(
    play: Callable[[FakeEnvironment, Command], Exit],
    task: Task,
    ending: SessionReport = REPORT,
) -> tuple[AttemptResult, FakeSandbox]:
    sandbox = FakeSandbox(play)
    gateway = ScriptedGateway(Path("unused.sock"), ending=ending)
    runner = LocalAttemptRunner(sandbox, gateway, Caps(), "me", FixedClock())
    harness = harness_of("pass")
    key = AttemptKey(harness=harness.digest, task=task.id, task_digest="d", model="m", index=0)
    result = await runner.run(AttemptJob(key=key, harness=harness, task=task))
    assert all(e.closed == 1 for e in sandbox.opened)
    assert gateway.sessions == {}
    return result, sandbox


async def test_each_step_is_told_its_own_instruction_and_judged_before_the_next() -> None:
    scene = Scene('{"reward": 1}', '{"reward": 0.5}')
    result, _ = await attempted(scene, in_steps(step("one"), step("two")))
    assert scene.told == ["do one", "do two"]
    assert scene.seen_logs == [{}, {}]
    assert (result.outcome.status, result.outcome.reward) == (Status.COMPLETED, 0.75)
    assert (result.outcome.latency_s, result.outcome.timings.verifier_s) == (3.0, 4)


async def test_the_tests_of_a_step_are_gone_before_the_next_one_starts() -> None:
    shown: list[tuple[str, ...]] = []

    def play(environment: FakeEnvironment, command: Command) -> Exit:
        if command.gateway:
            shown.append(tuple(environment.mounts["/tests"]))
        return Scene('{"reward": 1}')(environment, command)

    await attempted(play, in_steps(step("one"), step("two")))
    assert shown == [(), ()]


async def test_a_step_below_its_threshold_ends_the_task() -> None:
    scene = Scene('{"reward": 0.4}', '{"reward": 1}')
    task = in_steps(step("one", min_reward={"reward": 0.5}), step("two"))
    result, _ = await attempted(scene, task)
    assert scene.told == ["do one"]
    assert result.outcome.reward == 0.4


async def test_a_threshold_on_a_key_that_was_not_given_ends_the_task() -> None:
    scene = Scene('{"reward": 1}', '{"reward": 1}')
    await attempted(scene, in_steps(step("one", min_reward={"speed": 0.1}), step("two")))
    assert scene.told == ["do one"]


async def test_the_last_step_decides_where_the_task_says_so() -> None:
    scene = Scene('{"reward": 0}', '{"reward": 1}')
    task = in_steps(step("one"), step("two"), step_reward=StepReward.FINAL)
    assert (await attempted(scene, task))[0].outcome.reward == 1.0


async def test_a_time_out_in_a_step_is_graded_and_the_attempt_is_called_by_it() -> None:
    late = Exit(code=137, seconds=9, limit="time")
    scene = Scene('{"reward": 0}', '{"reward": 1}', exits=(late,))
    result, _ = await attempted(scene, in_steps(step("one"), step("two")))
    assert (result.outcome.status, result.outcome.reward) == (Status.AGENT_TIMEOUT, 0.5)


async def test_a_step_without_a_reward_makes_the_attempt_missing() -> None:
    scene = Scene('{"reward": 1}', "{}")
    result, _ = await attempted(scene, in_steps(step("one"), step("two")))
    assert (result.outcome.status, result.outcome.reward) == (Status.VERIFIER_ERROR, None)
    assert "step two" in result.outcome.detail


async def test_a_providers_fault_in_steps_is_missing() -> None:
    scene = Scene('{"reward": 1}', '{"reward": 1}')
    task = in_steps(step("one"), step("two"))
    result, _ = await attempted(scene, task, replace(REPORT, fault="rate limit"))
    assert (result.outcome.status, result.outcome.reward) == (Status.MODEL_ERROR, None)


async def test_a_sign_of_hacking_in_a_step_ends_the_attempt_with_nothing() -> None:
    def play(environment: FakeEnvironment, command: Command) -> Exit:
        if command.gateway:
            environment.log_files["verifier/reward.txt"] = "1"
        return Exit(code=0, seconds=1)

    result, _ = await attempted(play, in_steps(step("one"), step("two")))
    assert (result.outcome.reward, result.outcome.flags) == (0.0, ("wrote-verifier-logs",))


async def test_a_steps_files_are_put_in_place_and_set_up_before_the_harness() -> None:
    files = FileTree.of_texts({"setup.sh": "true", "data.txt": "x"})
    _, sandbox = await attempted(Scene('{"reward": 1}'), in_steps(step("one", files=files)))
    copy, setup, entry, _ = sandbox.opened[0].commands
    assert copy.argv[0] == "sh" and setup.argv == ("bash", "setup.sh") and entry.gateway


async def test_a_set_up_that_fails_is_no_harness_s_fault() -> None:
    def play(environment: FakeEnvironment, command: Command) -> Exit:
        return Exit(code=1 if command.argv[0] == "bash" else 0, seconds=0, stderr="no room")

    files = FileTree.of_texts({"setup.sh": "false"})
    result, _ = await attempted(play, in_steps(step("one", files=files)))
    assert (result.outcome.status, result.outcome.reward) == (Status.ENVIRONMENT_ERROR, None)
    assert "no room" in result.outcome.detail


async def test_what_an_earlier_step_left_in_the_way_of_files_is_the_harness_s_work() -> None:
    scene = Scene('{"reward": 1}')

    def play(environment: FakeEnvironment, command: Command) -> Exit:
        return Exit(code=1, seconds=0) if command.argv[0] == "sh" else scene(environment, command)

    files = FileTree.of_texts({"a.txt": ""})
    result, _ = await attempted(play, in_steps(step("one"), step("two", files=files)))
    assert (result.outcome.status, result.outcome.reward) == (Status.COMPLETED, 0.5)
    first, _ = await attempted(play, in_steps(step("one", files=files), step("two")))
    assert first.outcome.status is Status.ENVIRONMENT_ERROR, "no harness had been there"


@pytest.mark.parametrize(("limit", "reward"), [("storage", 0.0), ("memory", 0.0), ("time", None)])
async def test_a_verifier_without_room_is_the_harness_s_work_and_one_without_time_is_not(
    limit: str, reward: float | None
) -> None:
    def play(environment: FakeEnvironment, command: Command) -> Exit:
        ours = command.argv[0].startswith("/tests/")
        return Exit(code=137, seconds=1, limit=limit) if ours else Exit(code=0, seconds=0)

    result, _ = await attempted(play, sorting_task())
    assert result.outcome.reward == reward
    assert result.outcome.status.is_infrastructure is (reward is None)


@pytest.mark.parametrize(
    ("rewards", "rule", "reward"),
    [
        ([{"reward": 1.0}, {"reward": 0.0}], StepReward.MEAN, 0.5),
        ([{"a": 1.0}, {"a": 1.0, "b": 1.0}], StepReward.MEAN, 0.75),
        ([{"reward": 1.0}], StepReward.MEAN, 1.0),
        ([{"reward": 1.0}, {"reward": 0.25}], StepReward.FINAL, 0.25),
    ],
)
def test_rewards_of_steps_are_combined_by_key(
    rewards: list[dict[str, float]], rule: StepReward, reward: float
) -> None:
    judgements = [Judgement(reward=0.0, rewards=given) for given in rewards]
    assert combined(judgements, (step("one"), step("two")), rule).reward == reward


# --- health --------------------------------------------------------------------------------------


async def test_an_environment_that_never_gets_healthy_is_no_harness_s_fault() -> None:
    def play(environment: FakeEnvironment, command: Command) -> Exit:
        return Exit(code=1, seconds=0, stderr="not up")

    check = Healthcheck(command="probe", interval_s=0, retries=2)
    task = replace(sorting_task(), setting=Setting(healthcheck=check))
    result, sandbox = await attempted(play, task)
    assert result.outcome.status is Status.ENVIRONMENT_ERROR
    assert "healthcheck failed 2 times" in result.outcome.detail
    assert [c.argv for c in sandbox.opened[0].commands] == [("sh", "-c", "probe")] * 2


async def test_failures_while_it_starts_do_not_count() -> None:
    exits = [Exit(code=1, seconds=0)] * 3 + [Exit(code=0, seconds=0)]
    spec = EnvironmentSpec(workspace=FileTree(), mounts={}, limits=Limits(), owner="me")
    environment = FakeEnvironment(spec, lambda e, c: exits.pop(0))
    check = Healthcheck(command="x", start_period_s=60, start_interval_s=0, retries=1)
    await until_healthy(environment, sorting_task(), check)
    assert exits == []
    late = FakeEnvironment(spec, lambda e, c: Exit(code=1, seconds=0))
    with pytest.raises(MiloError, match="1 times"):
        await until_healthy(late, sorting_task(), replace(check, start_period_s=0))


# --- verifiers -----------------------------------------------------------------------------------


async def test_a_verifier_of_its_own_sees_the_start_and_the_artifacts_alone() -> None:
    def play(environment: FakeEnvironment, command: Command) -> Exit:
        if command.gateway:
            environment.files = FileTree.of_texts({"changed": "x"})
            environment.log_files |= {"artifacts/a.txt": "made", "agent/chat": "words"}
        if command.argv[0].startswith("/tests/"):
            environment.log_files["verifier/reward.txt"] = "1"
        return Exit(code=0, seconds=1)

    judging = Judging(separate=True, env={"KEY": "1"}, limits=Limits(memory_mb=64))
    task = replace(sorting_task(), judging=judging)
    result, sandbox = await attempted(play, task)
    agents, own = sandbox.opened
    assert result.outcome.reward == 1.0
    assert own.files == task.workspace
    assert own.spec.limits.memory_mb == 64
    assert "/tests" not in agents.mounts and "/tests" in own.mounts
    put, test = own.commands
    assert (put.argv[0], test.env["KEY"]) == ("sh", "1")


async def test_what_the_agent_logged_is_there_for_the_verifier_but_no_reward_is() -> None:
    """Harbor keeps the logs of the agent and removes stale reward files alone."""
    carried: list[tuple[str, ...]] = []

    def play(environment: FakeEnvironment, command: Command) -> Exit:
        if command.gateway:
            environment.log_files |= {"agent/chat.txt": "words", "artifacts/a.txt": "made"}
        if command.argv[0] == "sh":
            carried.append(tuple(environment.mounts[command.argv[4]]))
        if command.argv[0].startswith("/tests/"):
            environment.log_files["verifier/reward.txt"] = "1"
        return Exit(code=0, seconds=1)

    result, _ = await attempted(play, sorting_task())
    assert result.outcome.reward == 1.0
    assert carried == [("agent/chat.txt", "artifacts/a.txt")]


def test_a_verifier_that_wants_the_network_is_refused_where_there_is_none() -> None:
    wants = Judging(separate=True, limits=Limits(network=Network.PUBLIC))
    task = replace(sorting_task(), judging=wants)
    with pytest.raises(TaskError, match="public-network"):
        check_needs(task, FakeSandbox(lambda e, c: Exit(code=0, seconds=0)))


async def test_what_a_verifier_leaves_in_the_workspace_is_not_shown_as_the_harness_s() -> None:
    """A mutator reads what an attempt changed: the answers must not be among it."""

    def play(environment: FakeEnvironment, command: Command) -> Exit:
        if command.argv[0].startswith("/tests/"):
            environment.files = environment.files.with_texts({"expected.txt": "the answer"})
            environment.log_files["verifier/reward.json"] = '{"reward": 1}'
        elif command.gateway:
            environment.files = environment.files.with_texts({"mine.txt": "work"})
        return Exit(code=0, seconds=1)

    result, _ = await attempted(play, in_steps(step("one")))
    assert dict(result.trace.changed) == {"mine.txt": "work"}
