"""Packages on this machine: how they are brought, and found again by their folders' stamps."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from milo.agents.cli.description import load
from milo.agents.pool import AGENTS
from milo.app import agents, own_python, packages
from milo.app.own_python import Interpreter, asked, newest_enough
from milo.app.packages import STAMP, Shelf, check_packages, install, steps
from milo.app.recipes import load as recipe_of
from milo.app.sandbox_shell import SandboxShell
from milo.core.errors import ConfigError, MiloError
from milo.core.harness import Harness
from milo.core.packages import Packages
from milo.core.ports import Exit
from milo.core.tree import FileTree
from milo.testing.fake_sandbox import FakeSandbox

ANY_PYTHON = Interpreter((3, 11), Path("/usr/bin/python3"), Path("/usr/lib/python3"))
PIP = Packages(pip=("a==1",))
BOTH = Packages(pip=("a==1",), npm=("b@1.0.0",))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands of installations, none of which is run; a word "fails" fails."""
    commands: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...], **more: object) -> subprocess.CompletedProcess[str]:
        commands.append(argv)
        return subprocess.CompletedProcess(argv, 1 if "fails==1" in argv else 0)

    monkeypatch.setattr(packages.subprocess, "run", run)
    monkeypatch.setattr(own_python, "asked", lambda executable: ANY_PYTHON)
    monkeypatch.setattr(own_python, "copied", lambda found, folder: folder / "python/bin/python3")
    monkeypatch.setattr(own_python, "complete", lambda executable, folder: None)
    return commands


def test_npm_and_pip_each_install_into_the_folder_itself() -> None:
    npm, venv, pip = steps(BOTH, Path("/f"), Path("/f/python/bin/python3"))
    assert npm.argv[:2] == ("npm", "install") and npm.argv[-3:] == ("--prefix", "/f", "b@1.0.0")
    assert str(venv) == "/f/python/bin/python3 -m venv /f"
    assert pip.argv[:2] == ("/f/bin/pip", "install") and "a==1" in pip.argv


def test_what_was_installed_is_found_by_its_list_whatever_its_folder(
    tmp_path: Path, ran: list[tuple[str, ...]]
) -> None:
    shelf = Shelf(tmp_path)
    assert shelf.find(PIP) is None
    install(PIP, tmp_path / "an_agent", "an agent")
    assert shelf.find(PIP) == shelf.place(PIP) == tmp_path / "an_agent"
    assert shelf.find(BOTH) is None
    assert shelf.place(BOTH) == tmp_path / f"packages-{BOTH.digest}"


def test_half_an_installation_is_never_found(tmp_path: Path, ran: list[tuple[str, ...]]) -> None:
    install(PIP, tmp_path / "x", "x")
    assert (tmp_path / "x" / STAMP).is_file()
    broken = Packages(pip=("fails==1",))
    with pytest.raises(MiloError, match=r"installing x: .* ended with 1"):
        install(broken, tmp_path / "x", "x")
    assert Shelf(tmp_path).find(PIP) is None and Shelf(tmp_path).find(broken) is None


def test_a_stamp_that_can_not_be_read_is_no_stamp(tmp_path: Path) -> None:
    for name, text in (("one", "{"), ("two", '{"pip": ["a"]}'), ("three", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / STAMP).write_text(text)
    assert Shelf(tmp_path).find(PIP) is None


def test_a_host_that_lacks_a_seeds_packages_is_refused_at_its_start() -> None:
    check_packages((PIP, Packages()), lambda wanted: Path("/f"))
    check_packages((Packages(),), lambda wanted: None)
    with pytest.raises(ConfigError, match="expected a==1 installed"):
        check_packages((PIP,), lambda wanted: None)


def test_a_python_that_is_new_enough_is_found_and_none_where_none_is() -> None:
    found = newest_enough((3, 11))
    assert found is not None and found.version >= (3, 11)
    assert (found.library / "os.py").is_file() and found.executable.is_file()
    assert newest_enough((3, 99)) is None
    assert asked("/bin/false") is None and asked("/no/such/python") is None


def test_the_python_of_an_environment_is_a_copy_that_runs(tmp_path: Path) -> None:
    """What breaks without it: sandboxes hide a user's Python, and containers have none."""
    found = newest_enough((3, 11))
    assert found is not None
    own = own_python.copied(found, tmp_path)
    said = asked(str(own))
    assert said is not None
    assert said.executable == own.resolve() and said.library.is_relative_to(tmp_path)
    assert not (said.library / "test").exists()


def test_the_libraries_of_an_interpreter_come_along_but_not_the_c_library() -> None:
    said = """
        linux-vdso.so.1 (0x1)
        libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x2)
        libexpat.so.1 => /lib/x86_64-linux-gnu/libexpat.so.1 (0x3)
        libmvec.so.1 => /lib/x86_64-linux-gnu/libmvec.so.1 (0x4)
        libcrypt.so.1 => /lib/x86_64-linux-gnu/libcrypt.so.1 (0x5)
        libgone.so.1 => not found
        /lib64/ld-linux-x86-64.so.2 (0x6)
    """
    names = {n for n, _ in own_python.NEEDED.findall(said) if not own_python.OF_THE_PLACE.match(n)}
    assert names == {"libexpat.so.1", "libcrypt.so.1"}


def test_no_python_that_is_new_enough_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected Python 3\.99 or later"):
        install(Packages(pip=("a==1",), python="3.99"), tmp_path, "x")


@pytest.mark.parametrize("name", [name for name in AGENTS if name != "goose"])
def test_an_agent_is_installed_with_exact_versions(name: str) -> None:
    """So that a harness of the same packages finds them."""
    wanted = agents.needs(load(name), 22)
    again = {"pip": list(wanted.pip), "npm": list(wanted.npm)}
    exact = {**again, "npm": [p for p in again["npm"] if p != "node@22"]}
    assert Packages.parse(exact, name)


@pytest.mark.parametrize("name", ["mini_swe_agent", "deepagents", "opencode", "cline"])
def test_a_mutator_and_a_seed_of_one_name_share_one_installation(name: str) -> None:
    seed = Harness.from_tree(recipe_of(name).files).manifest.packages
    assert agents.needs(load(name), 22) == seed


MANIFEST = 'name = "h"\nentry = "python main.py"\n[packages]\npip = ["a==1"]\n'


@pytest.mark.parametrize(
    ("manifest", "shown"),
    [(MANIFEST, (Path("/f"),)), (MANIFEST.replace("a==1", "b==1"), ()), ("name = ", ())],
)
async def test_a_mutators_shell_sees_the_packages_of_a_whole_harness(
    manifest: str, shown: tuple[Path, ...]
) -> None:
    """What breaks without it: a mutator can't try its edit, or has no shell on a broken tree."""
    sandbox = FakeSandbox(lambda environment, command: Exit(code=0, seconds=0))
    shell = SandboxShell(sandbox, "me", lambda wanted: Path("/f") if wanted == PIP else None)
    tree = FileTree.of_texts({"harness.toml": manifest, "main.py": ""})
    ended, left = await shell(tree, "ls", 1.0)
    assert ended.code == 0 and left == tree
    environment = sandbox.opened[0]
    assert environment.spec.folders == shown
    assert environment.commands[0].env.get("MILO_PACKAGES") == ("/f" if shown else None)
