"""The factories travel to other machines, which have neither the suite's folder nor our paths."""

from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

from milo.app.compose import AppParts
from milo.app.config import compose


def write_suite(folder: Path) -> Path:
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        (folder / name / "instruction.md").write_text(f"Sort {name}.")
        (folder / name / "check.sh").write_text("true")
    return folder


def parts_of(suite: Path, run: Path) -> AppParts:
    words = [f"suite={suite}", "suite.search=1", "suite.validation=1", "suite.test=0"]
    return AppParts(plan=replace(compose(words), run=str(run)), path=run)


def test_another_machine_gets_the_tasks_themselves(tmp_path: Path) -> None:
    """A host or an island there would find no folder, or a copy that differs."""
    suite = write_suite(tmp_path / "suite")
    here = parts_of(suite, tmp_path / "run")
    sent = pickle.dumps(here)
    shutil.rmtree(suite)
    there = pickle.loads(sent)
    assert {t.id: t.digest for t in there.suite().tasks.values()} == {
        t.id: t.digest for t in here.suite().tasks.values()
    }
    assert list(there.suite().tasks["a"].tests) == ["check.sh", "test.sh"]


def test_what_was_carried_once_is_carried_on(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    there = pickle.loads(pickle.dumps(parts_of(suite, tmp_path / "run")))
    (suite / "a" / "instruction.md").write_text("Something else.")
    further = pickle.loads(pickle.dumps(there.served(())))
    assert further.suite().tasks["a"].instruction == "Sort a."
