"""A harness's packages in an attempt and in its smoke test."""

from __future__ import annotations

from pathlib import Path

import pytest

from milo.core.attempt import AttemptKey, Status
from milo.core.harness import Harness
from milo.core.packages import Packages
from milo.core.ports import AttemptJob, Caps, Command, Exit
from milo.core.tree import FileTree
from milo.rollout.runner import LocalAttemptRunner
from milo.testing.fake_sandbox import FakeEnvironment, FakeSandbox
from milo.testing.gateways import FixedClock, ScriptedGateway
from milo.testing.sorting import sorting_task

MANIFEST = """
name = "equipped"
entry = "tool main.py"
setup = "tool main.py --setup"
smoke = "other main.py --smoke"
"""


def harness(packages: str) -> Harness:
    text = f"{MANIFEST}[packages]\n{packages}\n"
    return Harness.from_tree(FileTree.of_texts({"harness.toml": text, "main.py": ""}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for place in ("bin/tool", "node_modules/.bin/other"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text("")
    return tmp_path


def passing(environment: FakeEnvironment, command: Command) -> Exit:
    if command.argv[0].startswith("/tests/"):
        environment.log_files["verifier/reward.txt"] = "1"
    return Exit(code=0, seconds=1)


def runner_with(sandbox: FakeSandbox, found: Path | None) -> LocalAttemptRunner:
    asked: list[Packages] = []

    def find(packages: Packages) -> Path | None:
        asked.append(packages)
        return found

    gateway = ScriptedGateway(Path("unused.sock"))
    return LocalAttemptRunner(sandbox, gateway, Caps(), "me", FixedClock(), find=find)


def job(subject: Harness) -> AttemptJob:
    key = AttemptKey(harness=subject.digest, task="t", task_digest="d", model="m", index=0)
    return AttemptJob(key=key, harness=subject, task=sorting_task())


async def test_an_attempt_sees_the_packages_and_starts_their_programs(folder: Path) -> None:
    sandbox = FakeSandbox(passing)
    result = await runner_with(sandbox, folder).run(job(harness('pip = ["a==1"]')))
    assert result.outcome.status is Status.COMPLETED and result.outcome.reward == 1.0
    environment = sandbox.opened[0]
    assert environment.spec.folders == (folder,)
    setup, entry = environment.commands[:2]
    assert setup.argv == (str(folder / "bin/tool"), "main.py", "--setup")
    assert entry.argv == (str(folder / "bin/tool"), "main.py")
    assert entry.env["MILO_PACKAGES"] == setup.env["MILO_PACKAGES"] == str(folder)
    assert "PATH" not in entry.env
    assert all("MILO_PACKAGES" not in c.env for c in environment.commands[2:])


async def test_the_smoke_test_sees_them_too_and_has_more_time(folder: Path) -> None:
    sandbox = FakeSandbox(passing)
    assert await runner_with(sandbox, folder).smoke(harness('npm = ["a@1.0.0"]')) == ""
    command = sandbox.opened[0].commands[-1]
    assert command.argv[0] == str(folder / "node_modules/.bin/other")
    assert command.timeout_s == 180.0


@pytest.mark.parametrize("packages", ['pip = ["a==1"]', ""])
async def test_only_programs_of_npm_are_free_of_the_limit_on_addresses(
    folder: Path, packages: str
) -> None:
    """What breaks without it: Node reserves gigabytes at its start and dies of the limit."""
    sandbox = FakeSandbox(passing)
    runner = runner_with(sandbox, folder)
    await runner.run(job(harness(packages)))
    await runner.run(job(harness('npm = ["a@1.0.0"]')))
    assert [opened.spec.limits_addresses for opened in sandbox.opened] == [True, False]


async def test_a_host_without_the_packages_is_no_fault_of_the_harness() -> None:
    sandbox = FakeSandbox(passing)
    subject = harness('pip = ["a==1"]')
    result = await runner_with(sandbox, None).run(job(subject))
    assert result.outcome.status is Status.ENVIRONMENT_ERROR
    assert "needs a==1, which this host has not installed" in result.outcome.detail
    assert "needs a==1" in await runner_with(sandbox, None).smoke(subject)
    assert not sandbox.opened


async def test_a_harness_without_packages_stays_as_it_was() -> None:
    sandbox = FakeSandbox(passing)
    await runner_with(sandbox, None).run(job(harness("")))
    spec, entry = sandbox.opened[0].spec, sandbox.opened[0].commands[1]
    assert spec.folders == () and entry.argv == ("tool", "main.py")
    assert "MILO_PACKAGES" not in entry.env
