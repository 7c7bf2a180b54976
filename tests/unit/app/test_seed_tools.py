"""`milo seed`: recipes, the user's own harnesses, and how a run finds them by name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from milo.app import recipes, seed_tools
from milo.app.cli import main
from milo.app.config import compose
from milo.app.packages import FOLDER as PACKAGES
from milo.app.recipes import FOLDER, RECIPE, copied
from milo.app.seed_folder import SEEDS, added
from milo.core.errors import ConfigError, HarnessError, MiloError
from milo.core.harness import Harness
from milo.core.ports import Command, Exit
from milo.core.tree import FileTree
from milo.testing.fake_sandbox import FakeEnvironment, FakeSandbox

EXPERTS = (
    *("cline", "deepagents", "goose", "mini_swe_agent", "minimal"),
    *("opencode", "openhands", "qwen_code", "terminus_2"),
)
OWN = {"harness.toml": 'name = "own"\nentry = "python3 main.py"\n', "main.py": "print(1)\n"}


def fails_if_told(environment: FakeEnvironment, command: Command) -> Exit:
    broken = "broken" in environment.mounts["/harness"].text("harness.toml")
    return Exit(code=1 if broken else 0, seconds=0.1, stderr="it is broken" if broken else "")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own folders, and a sandbox without processes."""
    monkeypatch.setenv(SEEDS, str(tmp_path / "seeds"))
    monkeypatch.setenv(PACKAGES, str(tmp_path / "packages"))
    monkeypatch.setattr(seed_tools, "choose", lambda kind: FakeSandbox(fails_if_told))
    return tmp_path


def written(folder: Path, files: dict[str, str]) -> Path:
    FileTree.of_texts(files).write_to(folder)
    return folder


# --- recipes ---------------------------------------------------------------------------------


def test_every_expert_of_the_list_has_a_recipe() -> None:
    assert recipes.names() == EXPERTS


@pytest.mark.parametrize("name", EXPERTS)
def test_a_recipe_says_what_is_editable_and_its_files_make_a_harness(name: str) -> None:
    recipe = recipes.load(name)
    harness = Harness.from_tree(recipe.files, name)
    assert harness.manifest.name == name and harness.manifest.smoke
    assert RECIPE not in harness.tree and len(recipe.editable) > 20
    assert bool(recipe.version) == bool(harness.manifest.packages)
    assert recipe.fixed or not harness.manifest.packages
    assert recipe.sources or not harness.manifest.packages.pip
    ours = {path.split("/")[0] for path in harness.tree}
    assert ours.isdisjoint(place.split("/")[0] for place in recipe.sources)


def test_another_version_is_named_in_the_manifest_wherever_it_stands() -> None:
    recipe = recipes.load("openhands")
    made = Harness.from_tree(recipe.template("9.9.9")).manifest.packages
    assert made.pip == ("openhands-sdk==9.9.9", "openhands-tools==9.9.9")
    assert made.python == "3.12"
    node = recipes.load("qwen_code")
    listed = Harness.from_tree(node.template("1.2.3")).manifest.packages.npm
    assert "@qwen-code/qwen-code@1.2.3" in listed
    assert recipe.template("") == recipe.template(recipe.version) == recipe.files


def test_a_recipe_without_packages_has_no_versions() -> None:
    with pytest.raises(ConfigError, match="expected no version"):
        recipes.load("minimal").template("1.0")


def test_sources_are_copied_out_of_the_installed_packages(tmp_path: Path) -> None:
    site = "lib/python3.11/site-packages"
    written(
        tmp_path,
        {
            f"{site}/minisweagent/agents/default.py": "loop\n",
            f"{site}/minisweagent/__pycache__/x.pyc": "no\n",
            f"{site}/mini_swe_agent-2.4.6.dist-info/licenses/LICENSE.md": "licence\n",
        },
    )
    tree = recipes.load("mini_swe_agent").harness("", tmp_path)
    assert tree.text("minisweagent/agents/default.py") == "loop\n"
    assert tree.text("LICENSE.md") == "licence\n"
    assert "Editable: the agent's whole Python source" in tree.text("README.md")
    assert "mini-SWE-agent 2.4.6" in tree.text("README.md")
    assert not [path for path in tree if "__pycache__" in path]
    with pytest.raises(MiloError, match="hold no nothing"):
        copied("x", "nothing", tmp_path)


def test_an_unknown_seed_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'opencode'"):
        seed_tools.add("open-code")


def test_no_code_of_the_packages_is_in_the_repository() -> None:
    assert {path.parent.name for path in FOLDER.glob(f"*/{RECIPE}")} == set(EXPERTS)
    sizes = [path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(sizes) < 64 * 1024


# --- adding ----------------------------------------------------------------------------------


def test_an_expert_without_packages_is_added_and_found_by_its_name(
    folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["seed", "add", "minimal"]) == 0
    said = capsys.readouterr().out
    assert f"minimal is in {folders}/seeds/minimal" in said
    assert "Editable: everything" in said and "Its smoke test passes." in said
    plan = compose(["seeds=minimal", "budget.attempts=9"], environ={}, cwd=folders)
    assert plan.seeds == (str(folders / "seeds" / "minimal"),)
    assert seed_tools.add("minimal") == 0  # the same once more changes nothing


def test_a_folder_that_is_there_comes_before_a_seed_of_its_name(folders: Path) -> None:
    seed_tools.add("minimal")
    here = written(folders / "here" / "minimal", OWN)
    plan = compose(["seeds=minimal", "budget.attempts=9"], environ={}, cwd=here.parent)
    assert plan.seeds == (str(here),)
    assert added("../seeds/minimal") is None and added("no-such") is None


def test_a_folder_of_the_users_own_is_added_under_its_name_or_another(folders: Path) -> None:
    own = written(folders / "own", OWN)
    assert main(["seed", "add", str(own)]) == 0
    assert main(["seed", "add", str(own), "--as", "second"]) == 0
    assert FileTree.from_dir(folders / "seeds" / "second") == FileTree.of_texts(OWN)
    assert "own              your own: added" in seed_tools.listing()
    assert main(["seed", "add", str(own), "--as", "../x"]) == 2


def test_another_seed_of_the_same_name_is_never_overwritten(folders: Path) -> None:
    own = written(folders / "own", OWN)
    seed_tools.add(str(own))
    (own / "main.py").write_text("print(2)\n")
    with pytest.raises(HarnessError, match="--as another"):
        seed_tools.add(str(own))
    assert (folders / "seeds" / "own" / "main.py").read_text() == "print(1)\n"


def test_a_harness_that_fails_its_smoke_test_is_added_and_said_so(
    folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {**OWN, "harness.toml": OWN["harness.toml"] + 'description = "broken"\n'}
    assert main(["seed", "add", str(written(folders / "own", broken))]) == 1
    said = capsys.readouterr().out
    assert "Its smoke test fails here: " in said and "it is broken" in said
    assert added("own") is not None


def test_the_packages_of_a_harness_are_installed_once(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, Path]] = []

    def install(packages: object, folder: Path, what: str) -> None:
        made.append((str(packages), folder))
        (folder / "bin").mkdir(parents=True)
        text = '{"pip": ["a==1"], "npm": [], "python": ""}'
        (folder / "milo-packages.json").write_text(text)

    monkeypatch.setattr(seed_tools, "install", install)
    files = {**OWN, "harness.toml": OWN["harness.toml"] + '[packages]\npip = ["a==1"]\n'}
    own = written(folders / "own", files)
    seed_tools.add(str(own))
    seed_tools.add(str(own), "second")
    assert [what for what, _ in made] == ["a==1"]
    assert made[0][1].parent == folders / "packages"


def test_a_git_repository_is_added_at_a_ref_and_from_a_folder_of_it(folders: Path) -> None:
    repository = written(folders / "repo", {f"harnesses/own/{p}": t for p, t in OWN.items()})
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e@e"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    (repository / "harnesses/own/main.py").write_text("print(2)\n")
    subprocess.run([*git, "commit", "-qam", "y"], check=True)
    url = f"git+file://{repository}"
    assert seed_tools.add(f"{url}@v1#subdirectory=harnesses/own") == 0
    assert (folders / "seeds/own/main.py").read_text() == "print(1)\n"
    assert seed_tools.add(f"{url}#subdirectory=harnesses/own", "newest") == 0
    assert (folders / "seeds/newest/main.py").read_text() == "print(2)\n"
    assert not (folders / "seeds/newest/.git").exists()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("git+file:///no/such/repository", "git clone"),
        ("git+file:///no/such/repository@--force", "a branch, tag or commit after @"),
        ("./no/such/folder", "a harness directory"),
    ],
)
def test_what_can_not_be_had_is_refused_with_the_reason(what: str, said: str) -> None:
    with pytest.raises(MiloError, match=said):
        seed_tools.add(what)


def test_the_list_says_of_each_what_it_is_and_what_is_editable() -> None:
    text = seed_tools.listing()
    assert "goose            Goose, untested: not added" in text
    assert "qwen_code        Qwen Code, 0.15.10: not added" in text
    assert "Fixed: the program itself, which comes as one compiled bundle" in text
