"""A whole run from a seed that names packages: it and what operators make of it run with them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from words import milo, serving, words_for, write_suite

import milo as package
from milo.app.packages import STAMP
from milo.core.attempt import Status
from milo.core.harness import Harness
from milo.store import RunReader
from milo.testing.sandbox_cases import let_others_pass

pytestmark = pytest.mark.timeout(240)

TOOL = '#!/bin/sh\n[ "$0" = "$MILO_PACKAGES/bin/tool" ] || exit 9\nexec python3 "$@"\n'
MANIFEST = """name = "equipped"
entry = "tool main.py"
smoke = "tool main.py --smoke"
[packages]
pip = ["tool==1"]
"""


def installed(root: Path) -> Path:
    """A folder of packages with one program in it."""
    program = root / "some-folder" / "bin" / "tool"
    program.parent.mkdir(parents=True)
    program.write_text(TOOL)
    program.chmod(0o755)
    (program.parents[1] / STAMP).write_text('{"pip": ["tool==1"], "npm": [], "python": ""}')
    let_others_pass(root)
    return root


def equipped_seed(folder: Path) -> Path:
    """The seed `bare`, started by the program of the packages."""
    shutil.copytree(Path(package.__file__).parent / "seeds" / "bare", folder)
    (folder / "harness.toml").write_text(MANIFEST)
    return folder


def test_a_seed_with_packages_is_searched_and_its_winner_needs_them_too(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    seed = equipped_seed(tmp_path / "equipped")
    place = {"MILO_AGENTS": str(installed(tmp_path / "packages"))}
    with serving() as server:
        words = words_for(server, suite, "run", f"seeds={seed}", "budget.rounds=2")
        done = milo(words, tmp_path, **place)
    assert done.returncode == 0, done.stderr
    with RunReader(tmp_path / "run") as reader:
        candidates = len(reader.population().lineage)
        statuses = {outcome.status for outcome in reader.attempts.iter()}
    assert candidates > 1
    assert statuses == {Status.COMPLETED}
    made = milo(["export", "run", "out"], tmp_path)
    assert made.returncode == 0, made.stderr
    assert Harness.from_dir(tmp_path / "out").manifest.packages.pip == ("tool==1",)
