"""The attempt runner over a sandbox in memory: statuses, flags, records, faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from milo.core.attempt import AttemptKey, Status, Usage
from milo.core.errors import MiloError, SandboxLost, TaskError
from milo.core.harness import Harness
from milo.core.ports import (
    AttemptJob,
    AttemptResult,
    Caps,
    Command,
    EnvironmentSpec,
    Exit,
    SessionReport,
)
from milo.core.task import Judging, Network, Reach, Setting, Task
from milo.core.tree import FileTree
from milo.rollout.runner import LocalAttemptRunner, check_needs
from milo.testing.fake_sandbox import FakeEnvironment, FakeSandbox, Play
from milo.testing.gateways import FixedClock, ScriptedGateway
from milo.testing.sorting import harness_of, sorting_task

REPORT = SessionReport(usage=Usage(uncached_input=7, output=3, calls=1), exchanges=())
Act = Callable[[FakeEnvironment], Exit]


def judge(environment: FakeEnvironment) -> Exit:
    environment.log_files["verifier/reward.txt"] = "1"
    environment.log_files["verifier/report.txt"] = "well done"
    return Exit(code=0, seconds=2, stdout="expected 1 2 3")


def play(
    agent: Act = lambda e: Exit(code=0, seconds=1.5),
    verifier: Act = judge,
    setup: Act = lambda e: Exit(code=0, seconds=0.5),
) -> Play:
    def acted(environment: FakeEnvironment, command: Command) -> Exit:
        if command.argv[0].startswith("/tests/"):
            return verifier(environment)
        return agent(environment) if command.gateway else setup(environment)

    return acted


async def attempted(
    sandbox: FakeSandbox,
    ending: SessionReport = REPORT,
    task: Task | None = None,
    harness: Harness | None = None,
) -> AttemptResult:
    gateway = ScriptedGateway(Path("unused.sock"), ending=ending)
    runner = LocalAttemptRunner(sandbox, gateway, Caps(), "me", FixedClock())
    task, harness = task or sorting_task(), harness or harness_of("pass")
    key = AttemptKey(harness=harness.digest, task=task.id, task_digest="d", model="m", index=0)
    result = await runner.run(AttemptJob(key=key, harness=harness, task=task))
    assert all(e.closed == 1 for e in sandbox.opened)
    assert gateway.sessions == {}
    return result


async def test_a_good_attempt_is_judged_and_timed_apart() -> None:
    result = await attempted(FakeSandbox(play()))
    outcome = result.outcome
    assert (outcome.status, outcome.reward, outcome.resolved) == (Status.COMPLETED, 1.0, True)
    assert (outcome.latency_s, outcome.timings.verifier_s) == (1.5, 2)
    assert (result.trace.report, result.trace.verifier_output) == ("well done", "expected 1 2 3")
    assert outcome.detail == ""


async def test_the_start_of_the_environment_is_timed_with_the_setup() -> None:
    """What breaks without it: nobody sees that images, not harnesses, take the time."""

    class Moving:
        """A clock that the sandbox moves."""

        seconds = 0.0

        def now(self) -> float:
            """The time."""
            return self.seconds

    class Slow(FakeSandbox):
        """Takes six seconds to open an environment."""

        async def open(self, spec: EnvironmentSpec) -> FakeEnvironment:
            """An environment, later."""
            clock.seconds += 6
            return await super().open(spec)

    clock, harness = Moving(), harness_of("pass")
    gateway = ScriptedGateway(Path("unused.sock"), ending=REPORT)
    runner = LocalAttemptRunner(Slow(play()), gateway, Caps(), "me", clock)
    key = AttemptKey(harness=harness.digest, task="t", task_digest="d", model="m", index=0)
    result = await runner.run(AttemptJob(key=key, harness=harness, task=sorting_task()))
    timings = result.outcome.timings
    assert (timings.setup_s, timings.agent_s, timings.verifier_s) == (6, 1.5, 2)


async def test_the_harness_is_told_what_the_contract_promises() -> None:
    sandbox = FakeSandbox(play())
    task = replace(sorting_task(), env={"EXTRA": "1"})
    await attempted(sandbox, task=task)
    environment = sandbox.opened[0]
    agent, verifier = environment.commands
    assert agent.argv == ("python3", "main.py")
    assert environment.mounts["/task"].text("instruction.md") == task.instruction
    assert agent.env == {
        "EXTRA": "1",
        "MILO_TASK": "/task/instruction.md",
        "OPENAI_BASE_URL": "http://127.0.0.1:8765/v1",
        "OPENAI_API_KEY": "token-1",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:8765",
        "ANTHROPIC_API_KEY": "token-1",
        "ANTHROPIC_AUTH_TOKEN": "token-1",
        "MILO_MODEL": "scripted",
        "MILO_DEADLINE": "1700000020.000",
    }
    assert not verifier.gateway
    assert verifier.env == {"EXTRA": "1"}
    assert verifier.timeout_s == task.limits.verifier_timeout_s


def ended(code: int = 0, limit: str = "") -> Play:
    return play(agent=lambda e: Exit(code=code, seconds=3, limit=limit))


@pytest.mark.parametrize(
    ("acted", "report", "status", "said"),
    [
        (ended(code=2), REPORT, Status.AGENT_ERROR, "code 2"),
        (ended(code=137, limit="time"), REPORT, Status.AGENT_TIMEOUT, "time limit after 3.0 s"),
        (ended(code=137, limit="memory"), REPORT, Status.AGENT_ERROR, "memory limit"),
        (ended(), replace(REPORT, capped="tokens"), Status.BUDGET_EXCEEDED, "tokens"),
        (ended(code=1), replace(REPORT, capped="calls"), Status.BUDGET_EXCEEDED, "calls"),
    ],
)
async def test_a_harness_that_failed_is_graded_all_the_same(
    acted: Play, report: SessionReport, status: Status, said: str
) -> None:
    result = await attempted(FakeSandbox(acted), report)
    assert result.outcome.status is status
    assert result.outcome.reward == 1.0
    assert said in result.outcome.detail


async def test_a_providers_fault_is_missing_and_not_judged() -> None:
    sandbox = FakeSandbox(ended(code=1))
    result = await attempted(sandbox, replace(REPORT, fault="rate limit"))
    assert result.outcome.status is Status.MODEL_ERROR
    assert result.outcome.reward is None
    assert len(sandbox.opened[0].commands) == 1


async def test_a_verifier_without_a_reward_is_missing() -> None:
    result = await attempted(FakeSandbox(play(verifier=lambda e: Exit(code=1, seconds=1))))
    assert result.outcome.status is Status.VERIFIER_ERROR
    assert result.outcome.reward is None
    assert "no reward file" in result.outcome.detail


async def test_a_failed_setup_is_the_harnesses_fault_and_asks_no_model() -> None:
    harness = Harness.from_tree(
        harness_of("pass").tree.with_texts(
            {"harness.toml": 'name = "x"\nentry = "python3 main.py"\nsetup = "false"\n'}
        )
    )
    sandbox = FakeSandbox(
        play(
            setup=lambda e: Exit(code=1, seconds=4),
            verifier=lambda e: (
                e.log_files.update({"verifier/reward.txt": "0"}) or Exit(code=0, seconds=1)
            ),
        )
    )
    result = await attempted(sandbox, harness=harness)
    assert (result.outcome.status, result.outcome.reward) == (Status.AGENT_ERROR, 0.0)
    assert (result.outcome.timings.setup_s, result.outcome.latency_s) == (4, 0.0)
    assert result.outcome.usage.calls == 0


def plants(path: str) -> Act:
    def act(environment: FakeEnvironment) -> Exit:
        environment.log_files[path] = "1"
        return Exit(code=0, seconds=1)

    return act


@pytest.mark.parametrize("path", ["verifier/reward.txt", "verifier/x", "tests/test.sh"])
async def test_a_flagged_attempt_scores_nothing(path: str) -> None:
    result = await attempted(FakeSandbox(play(agent=plants(path))))
    assert result.outcome.reward == 0.0
    assert len(result.outcome.flags) == 1
    assert "flagged" in result.outcome.detail


async def test_flags_of_the_model_session_count_as_well() -> None:
    result = await attempted(FakeSandbox(play()), replace(REPORT, flags=("foreign-token",)))
    assert result.outcome.reward == 0.0
    assert result.outcome.flags == ("foreign-token",)


async def test_the_agents_own_logs_are_no_flag() -> None:
    result = await attempted(FakeSandbox(play(agent=plants("agent/notes.txt"))))
    assert result.outcome.flags == ()


async def test_what_changed_is_in_the_trace() -> None:
    def act(environment: FakeEnvironment) -> Exit:
        environment.files = FileTree.of_texts({"answer.json": "[1]"})
        return Exit(code=0, seconds=1, stdout="so", stderr="se")

    trace = (await attempted(FakeSandbox(play(agent=act)))).trace
    assert trace.changed == {"answer.json": "[1]", "numbers.json": "[deleted]"}
    assert (trace.stdout, trace.stderr, trace.exit_code) == ("so", "se", 0)


@pytest.mark.parametrize("error", [MiloError("no room"), OSError("disk"), ValueError("bug")])
async def test_our_own_fault_is_recorded_and_never_raised(error: Exception) -> None:
    def act(environment: FakeEnvironment) -> Exit:
        raise error

    result = await attempted(FakeSandbox(play(agent=act)))
    assert result.outcome.status is Status.ENVIRONMENT_ERROR
    assert result.outcome.reward is None
    assert str(error) in result.outcome.detail


async def test_an_attempt_counts_that_was_made_before_its_environment_could_not_be_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was paid for; what is left is the reaper's."""

    async def close(environment: FakeEnvironment) -> None:
        environment.closed += 1
        raise MiloError("the engine is gone")

    monkeypatch.setattr(FakeEnvironment, "close", close)
    result = await attempted(FakeSandbox(play()))
    assert (result.outcome.status, result.outcome.reward) == (Status.COMPLETED, 1.0)


async def test_the_verifier_reaches_what_its_own_policy_says_as_its_own_user() -> None:
    reach = Reach(network=Network.ALLOWLIST, hosts=("a.b",))
    sandbox = FakeSandbox(play(), frozenset({"allowlisted-network", "users"}))
    judging = Judging(reach=reach, user="root")
    task = replace(sorting_task(), setting=Setting(user="bob"), judging=judging)
    await attempted(sandbox, task=task)
    (environment,) = sandbox.opened
    agent, verifier = environment.commands
    assert (agent.reach, agent.user) == (None, "bob")
    assert (verifier.reach, verifier.user) == (reach, "root")
    assert (environment.spec.reaches, environment.spec.users) == ((reach,), ("bob", "root"))


def test_a_need_names_where_the_task_asks_for_it() -> None:
    task = replace(sorting_task(), needs=frozenset({"heredocs: Dockerfile line 3"}))
    check_needs(task, FakeSandbox(play(), frozenset({"heredocs"})))
    with pytest.raises(TaskError, match="a sandbox with heredocs: Dockerfile line 3"):
        check_needs(task, FakeSandbox(play()))


async def test_cancelling_closes_session_and_environment() -> None:
    def act(environment: FakeEnvironment) -> Exit:
        raise asyncio.CancelledError

    sandbox = FakeSandbox(play(agent=act))
    with pytest.raises(asyncio.CancelledError):
        await attempted(sandbox)
    assert sandbox.opened[0].closed == 1


async def test_a_task_that_needs_more_than_the_sandbox_has_is_refused() -> None:
    sandbox = FakeSandbox(play())
    task = replace(sorting_task(), needs=frozenset({"image-build", "isolation"}))
    with pytest.raises(TaskError, match=r"sort.*image-build.*fake sandbox"):
        check_needs(task, sandbox)
    result = await attempted(sandbox, task=task)
    assert result.outcome.status is Status.ENVIRONMENT_ERROR
    assert sandbox.opened == []


@pytest.mark.parametrize("network", [Network.PUBLIC, Network.ALLOWLIST])
def test_a_task_that_needs_a_network_is_refused_where_there_is_none(network: Network) -> None:
    task = sorting_task()
    with pytest.raises(TaskError, match="network"):
        check_needs(
            replace(task, limits=replace(task.limits, network=network)), FakeSandbox(play())
        )


async def smoked(acted: Play, manifest: str = "") -> str:
    harness = Harness.from_tree(
        harness_of("pass").tree.with_texts(
            {"harness.toml": f'name = "x"\nentry = "python3 main.py"\n{manifest}'}
        )
    )
    gateway = ScriptedGateway(Path("unused.sock"))
    runner = LocalAttemptRunner(FakeSandbox(acted), gateway, Caps(), "me", FixedClock())
    return await runner.smoke(harness)


async def test_a_passing_smoke_command_says_nothing() -> None:
    assert await smoked(play(), 'smoke = "python3 main.py --smoke"\n') == ""


async def test_a_smoke_test_on_a_host_without_its_sandbox_says_nothing_of_the_harness() -> None:
    """What breaks without it: a child is invalid because the engine was dead."""

    def away(environment: FakeEnvironment, command: Command) -> Exit:
        raise SandboxLost("the container engine can't be reached")

    with pytest.raises(SandboxLost):
        await smoked(away, 'smoke = "python3 main.py --smoke"\n')


async def test_a_failing_smoke_command_says_what_it_printed() -> None:
    bad = play(setup=lambda e: Exit(code=1, seconds=1, stderr="Traceback: boom"))
    said = await smoked(bad, 'smoke = "python3 main.py --smoke"\n')
    assert "smoke command ended with code 1" in said
    assert "boom" in said


async def test_without_a_smoke_command_a_late_failure_is_no_false_start() -> None:
    def run(environment: FakeEnvironment, command: Command) -> Exit:
        code = 0 if "-c" in command.argv else 1
        return Exit(code=code, seconds=1, stderr="ConnectionRefusedError: no gateway\n")

    assert await smoked(run) == ""


async def test_without_a_smoke_command_a_missing_module_is_a_false_start() -> None:
    def run(environment: FakeEnvironment, command: Command) -> Exit:
        code = 0 if "-c" in command.argv else 1
        return Exit(code=code, seconds=1, stderr="ModuleNotFoundError: No module named 'x'\n")

    assert "starting the harness" in await smoked(run)


def test_a_variable_that_only_this_machine_could_fill_is_no_fault_of_the_sandbox() -> None:
    task = replace(sorting_task(), needs=frozenset({"variable API_KEY"}))
    with pytest.raises(TaskError, match=r"with a default.*none for variable API_KEY"):
        check_needs(task, FakeSandbox(play()))
