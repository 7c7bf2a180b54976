"""Every form of task on the local sandboxes: its reference scores full, doing nothing does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from milo.app.suite_tools import check_suite, run_solution
from milo.core.errors import ConfigError
from milo.core.ports import Sandbox
from milo.rollout.local import choose
from milo.suites.folder import load_one
from milo.testing.sandbox_cases import let_others_pass

SETTING = "FROM debian:12\nWORKDIR {workdir}\n"
REWARD = (
    "#!/bin/sh\ngrep -q {word} out.txt && r=1 || r=0\necho $r > $MILO_LOGS/verifier/reward.txt\n"
)


@pytest.fixture(params=["bubblewrap", "plain"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    """Skipped with the reason where it can't work."""
    root = tmp_path / "scratch"
    root.mkdir()
    let_others_pass(root)
    try:
        return choose(request.param, root=root)
    except ConfigError as error:
        pytest.skip(str(error))


def written(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


SIMPLE = {
    "instruction.md": "Sort in.txt into out.txt.",
    "files/in.txt": "b\na\n",
    "check.py": (
        "import pathlib, os\n"
        "tests = pathlib.Path(os.environ['MILO_TESTS'])\n"
        "assert pathlib.Path('out.txt').read_text() == (tests / 'wanted.txt').read_text()\n"
    ),
    "check/wanted.txt": "a\nb\n",
    "solution.sh": "sort in.txt > out.txt\n",
}
HARBOR = {
    "task.toml": "[environment.healthcheck]\ncommand = 'test -f in.txt'\n",
    "instruction.md": "Write done into out.txt.",
    "environment/Dockerfile": SETTING.format(workdir="/workspace") + "COPY in.txt ./\n",
    "environment/in.txt": "x",
    "tests/test.sh": REWARD.format(word="done"),
    "solution/solve.sh": "echo done > out.txt\n",
}
STEPS = {
    "task.toml": (
        "[[steps]]\nname = 'one'\nmin_reward = 1.0\n[[steps]]\nname = 'two'\n"
        "[steps.healthcheck]\ncommand = 'test -f two.txt'\n"
    ),
    "environment/Dockerfile": SETTING.format(workdir="/workspace"),
    "steps/one/instruction.md": "Write first into out.txt.",
    "steps/one/tests/test.sh": REWARD.format(word="first"),
    "steps/one/solution/solve.sh": "echo first > out.txt\n",
    "steps/two/instruction.md": "Append what two.txt says.",
    "steps/two/workdir/two.txt": "second\n",
    "steps/two/workdir/setup.sh": "echo ready >> two.txt\n",
    "steps/two/tests/test.sh": REWARD.format(word="ready"),
    "steps/two/solution/solve.sh": "cat two.txt >> out.txt\n",
}
APART = {
    "task.toml": "[verifier]\nenvironment_mode = 'separate'\n",
    "instruction.md": "Write done into $MILO_LOGS/artifacts/out.txt.",
    "environment/Dockerfile": SETTING.format(workdir="/workspace"),
    "tests/test.sh": (
        "#!/bin/sh\ncp $MILO_LOGS/artifacts/out.txt . 2>/dev/null\n[ -e trap ] && exit\n"
        + REWARD.format(word="done").partition("\n")[2]
    ),
    "solution/solve.sh": "touch trap; echo done > $MILO_LOGS/artifacts/out.txt\n",
}


@pytest.mark.parametrize(
    "files", [SIMPLE, HARBOR, STEPS, APART], ids=["simple", "harbor", "steps", "apart"]
)
async def test_a_reference_scores_full_and_doing_nothing_does_not(
    tmp_path: Path, sandbox: Sandbox, files: dict[str, str]
) -> None:
    task = load_one(written(tmp_path / "task", files))
    idle = await run_solution(sandbox, task, None)
    solved = await run_solution(sandbox, task, task.solution)
    assert (idle.reward, solved.reward) == (0.0, 1.0), (idle, solved)


async def test_a_task_works_where_its_dockerfile_says(tmp_path: Path, sandbox: Sandbox) -> None:
    if "workdir" not in sandbox.capabilities:
        pytest.skip("this sandbox has no folder but its own")
    files = {
        **HARBOR,
        "instruction.md": "Write done into /srv/app/out.txt.",
        "environment/Dockerfile": SETTING.format(workdir="/srv/app") + "COPY in.txt ./\n",
        "tests/test.sh": "#!/bin/sh\ncd /srv/app\n" + REWARD.format(word="done"),
        "solution/solve.sh": 'ln -s /srv/app/in.txt near && test "$PWD" = /srv/app && '
        'test "$MILO_WORKSPACE" = /srv/app && echo done > /srv/app/out.txt\n',
    }
    task = load_one(written(tmp_path / "task", files))
    assert "workdir" in task.needs
    assert (await run_solution(sandbox, task, task.solution)).reward == 1.0


async def test_declared_artifacts_reach_a_verifier_of_its_own(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    if "isolation" not in sandbox.capabilities:
        pytest.skip("artifacts are put at their absolute paths")
    files = {
        **HARBOR,
        "task.toml": "artifacts = ['/workspace/out.txt', '/workspace/none']\n"
        "[verifier]\nenvironment_mode = 'separate'\n",
        "solution/solve.sh": "echo done > out.txt; echo other > in.txt\n",
        "tests/test.sh": "#!/bin/sh\ngrep -q other in.txt && exit\n" + REWARD.format(word="done"),
    }
    task = load_one(written(tmp_path / "task", files))
    assert (await run_solution(sandbox, task, task.solution)).reward == 1.0


def test_a_folder_is_checked_and_what_fails_is_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "good", SIMPLE)
    written(tmp_path / "bad", {**SIMPLE, "solution.sh": "true\n"})
    written(tmp_path / "free", {**SIMPLE, "check.py": "pass\n"})
    written(tmp_path / "odd", {"task.toml": "[agent]\ntime = 3\n"})
    assert check_suite(str(tmp_path)) == 1
    said = capsys.readouterr().out
    assert "bad     bad: the reference solution must score 1, found 0" in said
    assert "bad     free: a no-op must score less than 1, found 1" in said
    assert "broken  odd: " in said and "'agent.time'" in said
    assert "1 of 4 tasks can be trusted" in said and "3 tasks are in quarantine" in said


def test_a_task_that_is_checked_by_itself_is_left_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A quarantine among its own files would make it another task, or none."""
    task = written(tmp_path / "bad", {**SIMPLE, "solution.sh": "sort no-such-file\n"})
    before = load_one(task).digest
    assert check_suite(str(task)) == 1
    said = capsys.readouterr().out
    assert "solve.sh ended with code 2" in said and "no-such-file" in said
    assert load_one(task).digest == before and not (task / "quarantine.json").exists()
