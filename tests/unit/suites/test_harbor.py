"""Harbor folders: read with their defaults, refused with folder, file, key and finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from milo.core.errors import TaskError
from milo.core.plan import SuitePlan
from milo.core.task import Healthcheck, Network, Reach, Task
from milo.core.tree import FileTree
from milo.suites.dockerfile import derive
from milo.suites.folder import load_folder
from milo.suites.harbor import load_task, write_task
from milo.suites.suite import load_suite

DOCKERFILE = "FROM debian:12\nWORKDIR /workspace\nCOPY data.txt /workspace/\n"


def folder_of(root: Path, toml: str = 'version = "1.0"\n', **changes: str | None) -> Path:
    files: dict[str, str | None] = {
        "task.toml": toml,
        "instruction.md": "Sort the lines.\n",
        "environment/Dockerfile": DOCKERFILE,
        "environment/data.txt": "b\na\n",
        "tests/test.sh": "#!/bin/sh\n",
    }
    files |= changes
    folder = root / "sort-lines"
    for path, text in files.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    return folder


def test_a_plain_task_loads_with_harbors_defaults(tmp_path: Path) -> None:
    task = load_task(folder_of(tmp_path, '[metadata]\ncategory = "files"\n'))
    assert (task.id, task.instruction, task.family) == ("sort-lines", "Sort the lines.", "files")
    assert dict(task.workspace) == dict(FileTree.of_texts({"data.txt": "b\na\n"}))
    assert task.needs == frozenset()
    assert task.limits.verifier_timeout_s == 600
    assert task.limits.network is Network.NONE


def test_limits_and_environment_are_read(tmp_path: Path) -> None:
    toml = (
        "[agent]\ntimeout_sec = 90\n[verifier]\ntimeout_sec = 30.5\n[environment]\n"
        'memory = "2G"\nstorage_mb = 512\ncpus = 2\nallow_internet = false\n'
        '[environment.env]\nMODE = "x"\n'
    )
    task = load_task(folder_of(tmp_path, toml))
    limits = task.limits
    assert (limits.agent_timeout_s, limits.verifier_timeout_s) == (90, 30.5)
    assert (limits.memory_mb, limits.storage_mb, limits.cpus) == (2048, 512, 2)
    assert (limits.network, task.env) == (Network.NONE, {"MODE": "x"})


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[agent\n", "task.toml: expected valid TOML"),
        ("[agent]\ntimeout_secs = 3\n", r"'agent.timeout_secs'.*expected 'timeout_sec'"),
        ('[agent]\ntimeout_sec = "3"\n', r"'agent.timeout_sec': expected a number.*found '3'"),
        ("[agent]\ntimeout_sec = -1\n", "a number above 0, found -1"),
        ("[environment]\nmemory_mb = 1.5\n", "whole number"),
        ('[environment]\nmemory = "lots"\n', "a size such as 2G"),
        ('[environment]\nnetwork_mode = "some"\n', "one of no-network"),
        ('[environment]\nallow_internet = "no"\n', "true or false"),
        ("[environment.env]\nA = 1\n", "'environment.env.A': expected a string"),
        ("agent = 3\n", "'agent': expected a table"),
        ('[verifier]\nenvironment_mode = "odd"\n', "one of shared, separate"),
        ('[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\n', "'separate' beside"),
        ('[environment]\nmemory = "2G"\nmemory_mb = 512\n', "the size that 'memory_mb' gives"),
        ('[environment]\nallowed_hosts = ["a.b"]\n', "network_mode = 'allowlist' beside it"),
        (
            '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["http://a.b"]\n',
            "'environment.allowed_hosts': expected host names",
        ),
        ('[environment]\nworkdir = "app"\n', "an absolute path"),
        ("[environment]\ngpus = -1\n", "a number of at least 0"),
        ("[environment.healthcheck]\nretries = 2\n", "'environment.healthcheck.command'"),
        ('[environment.healthcheck]\ncomand = "x"\n', "expected 'command'"),
        ("[agent]\nuser = true\n", "a user's name or number"),
        ('artifacts = ["/app/../x"]\n', r"'artifacts\[0\]': expected a path without"),
        ("tasks = 3\n", "'tasks': expected 'task', found an unknown key"),
        ("[metadata]\nfamily = 3\n", "'metadata.family': expected a string"),
    ],
)
def test_a_broken_task_toml_is_refused_by_key(tmp_path: Path, toml: str, words: str) -> None:
    with pytest.raises(TaskError, match=words) as caught:
        load_task(folder_of(tmp_path, toml))
    assert "sort-lines" in caught.value.thing


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"instruction.md": None}, "expected a file instruction.md, found none"),
        ({"instruction.md": " \n"}, "expected an instruction"),
        ({"tests/test.sh": None}, "the verifier tests/test.sh"),
        ({"environment/Dockerfile": None}, "environment/Dockerfile or the key"),
        ({"solution/other.sh": "x"}, "the script solution/solve.sh"),
    ],
)
def test_a_task_that_lacks_a_file_is_refused(
    tmp_path: Path, changes: dict[str, str | None], words: str
) -> None:
    with pytest.raises(TaskError, match=words):
        load_task(folder_of(tmp_path, **changes))


def test_a_suite_folder_with_a_stray_or_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no such folder"):
        load_folder(tmp_path / "none")
    with pytest.raises(TaskError, match="at least one task folder"):
        load_folder(tmp_path)
    folder_of(tmp_path)
    (tmp_path / "stray").mkdir()
    with pytest.raises(TaskError, match=r"stray: expected a file task.toml .*found none"):
        load_folder(tmp_path)


def test_links_in_a_task_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "tests" / "link").symlink_to("/etc/passwd")
    with pytest.raises(TaskError, match="a symbolic link"):
        load_task(folder)


@pytest.mark.parametrize(
    ("toml", "changes", "need"),
    [
        ("", {"environment/Dockerfile": DOCKERFILE + "RUN make\n"}, "image-build"),
        ('[environment]\ndocker_image = "a/b"\n', {"environment/Dockerfile": None}, "image-pull"),
        ("", {"environment/docker-compose.yaml": "x"}, "compose"),
        ("[environment]\ngpus = 1\n", {}, "gpu"),
        ('[verifier]\nnetwork_mode = "public"\n', {}, "phase-network"),
        ('[agent]\nuser = "bob"\n', {}, "users"),
        ("[[verifier.collect]]\ncommand = 'x'\n", {}, "verifier-collect"),
        ('[environment]\nos = "Windows"\n', {}, "windows"),
        ('[environment.env]\nKEY = "${OPENAI_API_KEY}"\n', {}, "variable OPENAI_API_KEY"),
        ('[[environment.mcp_servers]]\nname = "x"\n', {}, "mcp_servers"),
        (
            "",
            {
                "environment/Dockerfile": "FROM x\nWORKDIR /app\n",
                "instruction.md": "Write /app/x.",
            },
            "workdir",
        ),
    ],
)
def test_what_a_local_sandbox_lacks_is_named_in_needs(
    tmp_path: Path, toml: str, changes: dict[str, str | None], need: str
) -> None:
    assert need in load_task(folder_of(tmp_path, toml, **changes)).needs


CONTEXT = FileTree.of_texts({"a.txt": "A", "d/b.txt": "B", "d/e/c.txt": "C"})


@pytest.mark.parametrize(
    ("copy", "paths"),
    [
        ("COPY . .", ["a.txt", "d/b.txt", "d/e/c.txt"]),
        ("COPY d /app/sub", ["sub/b.txt", "sub/e/c.txt"]),
        ("COPY a.txt d/b.txt ./in/", ["in/a.txt", "in/b.txt"]),
        ("COPY a.txt new.txt", ["new.txt"]),
        ('COPY ["a.txt", "/app/"]', ["a.txt"]),
        ("COPY a.txt \\\n  d/b.txt \\\n  # why\n  /app/", ["a.txt", "b.txt"]),
    ],
)
def test_copies_into_the_workdir_are_followed(copy: str, paths: list[str]) -> None:
    found = derive(f"# base\nFROM x\nWORKDIR /app\nENV A=1 B='two words'\nENV C 3\n{copy}", CONTEXT)
    assert (found.obstacle, found.workdir) == ("", "/app")
    assert found.env == {"A": "1", "B": "two words", "C": "3"}
    assert list(found.workspace) == paths


@pytest.mark.parametrize(
    "line",
    [
        "RUN true",
        "run true",
        "USER bob",
        "COPY a.txt /etc/",
        "COPY a.txt ../x",
        "COPY --from=b a.txt .",
        "COPY *.txt .",
        "COPY $X .",
        "COPY [oops",
        "COPY <<E x",
        "ADD a.txt .",
        "WORKDIR /root",
        "ENV A",
        "FROM y",
        "ENTRYPOINT x",
    ],
)
def test_any_other_effect_is_an_obstacle(line: str) -> None:
    assert derive(f"FROM x\nWORKDIR /workspace\n{line}\n", CONTEXT).obstacle


def test_a_copy_before_any_workdir_is_an_obstacle() -> None:
    assert derive("FROM x\nCOPY a.txt .", CONTEXT).obstacle == "COPY before WORKDIR"
    assert derive("WORKDIR /app", CONTEXT).obstacle == "0 build stages"


def test_a_written_task_loads_back_equal(tmp_path: Path) -> None:
    task = Task(
        id="t-1",
        instruction='Say "hi".',
        family="f",
        workspace=FileTree.of_texts({"a/b.txt": "", "c.txt": "x\n"}),
        tests=FileTree.of_texts({"test.sh": "#!/bin/sh\n"}),
        env={"K": 'v"\\'},
        resolved_at=0.75,
        reward_range=(-1.0, 3.0),
    )
    write_task(tmp_path / "t-1", task)
    assert load_folder(tmp_path) == {"t-1": task}


@pytest.mark.parametrize("span", ["[1, 1]", "[2, 1]", "[0]", '"0-1"', "[0, inf]", "[true, 2]"])
def test_a_range_that_is_none_is_refused(tmp_path: Path, span: str) -> None:
    with pytest.raises(TaskError, match="reward_range"):
        load_task(folder_of(tmp_path, f"[metadata.milo]\nreward_range = {span}\n"))


def test_a_task_with_needs_is_not_written(tmp_path: Path) -> None:
    task = Task(id="t", instruction="x", needs=frozenset({"image-build"}))
    with pytest.raises(TaskError, match="image-build"):
        write_task(tmp_path, task)


def test_a_folder_of_tasks_is_a_suite_with_three_attempts_per_task(tmp_path: Path) -> None:
    for i in range(4):
        folder_of(tmp_path).rename(tmp_path / f"t{i}")
    plan = SuitePlan(name="mine", path=str(tmp_path), search=2, validation=2, test=0)
    suite = load_suite(plan)
    assert (suite.name, suite.k, len(suite.tasks)) == ("mine", 3, 4)


def test_a_dockerfile_is_preferred_to_a_prebuilt_image(tmp_path: Path) -> None:
    task = load_task(folder_of(tmp_path, '[environment]\ndocker_image = "a/b"\n'))
    assert (task.needs, list(task.workspace)) == (frozenset(), ["data.txt"])
    assert task.setting.image is not None
    assert task.setting.image.reference == "a/b"
    assert list(task.setting.image.context) == ["Dockerfile", "data.txt"]


def test_a_task_that_says_nothing_gets_the_network_that_the_suite_is_given(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    assert load_task(folder).limits.network is Network.NONE
    assert load_task(folder, Network.PUBLIC).limits.network is Network.PUBLIC
    folder_of(tmp_path, "[environment]\nallow_internet = false\n")
    assert load_task(folder, Network.PUBLIC).limits.network is Network.NONE


def test_an_allowlist_and_a_healthcheck_are_read(tmp_path: Path) -> None:
    toml = (
        '[environment]\nnetwork_mode = "allowlist"\n'
        'allowed_hosts = ["Index.Example.io", "*.debian.org", "10.0.0.0/8"]\nworkdir = "/srv"\n'
        '[environment.healthcheck]\ncommand = "test -f data.txt"\nretries = 5\n'
    )
    task = load_task(folder_of(tmp_path, toml))
    assert task.limits.network is Network.ALLOWLIST
    assert task.setting.hosts == ("index.example.io", "*.debian.org", "10.0.0.0/8")
    assert task.setting.workdir == "/srv"
    assert task.setting.healthcheck == Healthcheck(command="test -f data.txt", retries=5)


ALLOWED = "network_mode = 'allowlist'\nallowed_hosts = ['a.b']\n"
LISTED = Reach(network=Network.ALLOWLIST, hosts=("a.b",))


@pytest.mark.parametrize(
    ("toml", "harness", "verifier"),
    [
        (f"[environment]\n{ALLOWED}", LISTED, LISTED),
        (f"[environment]\n{ALLOWED}[agent]\nnetwork_mode = 'no-network'\n", Reach(), LISTED),
        (f"[agent]\n{ALLOWED}", LISTED, Reach()),
        (
            f"[environment]\n{ALLOWED}[agent]\nnetwork_mode = 'allowlist'\n",
            Reach(network=Network.ALLOWLIST),
            LISTED,
        ),
        (f"[verifier]\nenvironment_mode = 'separate'\n{ALLOWED}", Reach(), LISTED),
        (f"[agent]\n{ALLOWED}[verifier.environment]\n{ALLOWED}", LISTED, LISTED),
    ],
)
def test_each_phase_has_its_own_network_policy(
    tmp_path: Path, toml: str, harness: Reach, verifier: Reach
) -> None:
    """A phase that names no hosts of its own must not inherit another's."""
    task = load_task(folder_of(tmp_path, toml))
    assert (task.reach, task.verifier_reach) == (harness, verifier)
    assert "phase-network" not in task.needs, "no phase here has the open network"


def test_users_of_the_phases_are_read_by_name_and_number(tmp_path: Path) -> None:
    task = load_task(folder_of(tmp_path, "[agent]\nuser = 1000\n[verifier]\nuser = 'root'\n"))
    assert (task.setting.user, task.judging.user) == ("1000", "root")
    assert task.needs == {"users"} and task.setting.image is not None


def test_what_a_dockerfile_asks_of_its_builder_is_needed_with_its_file_and_line(
    tmp_path: Path,
) -> None:
    text = DOCKERFILE + "RUN --mount=type=cache,target=/c make\nRUN cat <<EOF\nx\nEOF\n"
    folder = folder_of(tmp_path, **{"environment/Dockerfile": text})
    path = folder / "environment" / "Dockerfile"
    assert load_task(folder).needs == {
        "image-build",
        f"buildkit: {path} line 4, RUN --mount=type=cache,target=/c",
        f"heredocs: {path} line 5, RUN <<EOF",
    }


def test_variables_are_filled_from_their_defaults_and_never_from_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODE", "of this machine")
    toml = '[environment.env]\nA = "x ${MODE:-plain} y"\n[verifier.env]\nB = "1"\n'
    task = load_task(folder_of(tmp_path, toml))
    assert (task.env, task.judging.env) == ({"A": "x plain y"}, {"B": "1"})


def test_canary_lines_are_not_shown_to_the_agent(tmp_path: Path) -> None:
    text = "<!-- a canary GUID 1 -->\n# Canary, do not remove\n\nSort the lines.\n# canary below\n"
    task = load_task(folder_of(tmp_path, **{"instruction.md": text}))
    assert task.instruction == "Sort the lines.\n# canary below"


def test_a_verifier_of_its_own_gets_the_declared_artifacts(tmp_path: Path) -> None:
    toml = (
        'artifacts = ["/workspace/out.txt"]\n'
        "[verifier.environment]\nmemory_mb = 512\nnetwork_mode = 'no-network'\n"
    )
    judging = load_task(folder_of(tmp_path, toml)).judging
    assert (judging.separate, judging.artifacts) == (True, ("/workspace/out.txt",))
    assert judging.limits is not None
    assert judging.limits.memory_mb == 512
    assert not judging.bundled


def test_a_verifier_image_in_tests_holds_the_tests_itself(tmp_path: Path) -> None:
    toml = '[verifier]\nenvironment_mode = "separate"\n'
    changes = {"tests/Dockerfile": "FROM x\nCOPY . /tests\n", "tests/test.sh": None}
    task = load_task(folder_of(tmp_path, toml, **changes))
    assert task.judging.bundled
    assert task.judging.setting is not None
    assert task.needs == {"image-build"}
