"""Reading runs: which one is meant, how far it has come, and getting a harness out of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from milo.app.cli import OK, USER_ERROR, main
from milo.app.convert import plain
from milo.app.inspect import export, locate, progress_of, report_of, report_text, runs_text
from milo.app.run_progress import RunProgress
from milo.core.errors import RunError
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    Event,
    IslandFounded,
    RunEnded,
    RunStarted,
    Verdict,
    WinnerFrozen,
)
from milo.core.fitness import TaskScore
from milo.core.harness import Harness
from milo.core.plan import RunPlan
from milo.core.tree import FileTree
from milo.store import RunStore

pytestmark = pytest.mark.usefixtures("workdir")


class FixedClock:
    def now(self) -> float:
        return 1_700_000_000.0


def harness(line: str) -> Harness:
    manifest = 'name = "small"\nentry = ["python3", "main.py"]\n'
    return Harness.from_tree(FileTree.of_texts({"harness.toml": manifest, "main.py": line}))


SEED, CHILD = harness("print('seed')\n"), harness("print('child')\n")
SCORE = TaskScore(n=1, reward=1.0, resolved=1, tokens=10.0, latency_s=1.0)


def events() -> list[Event]:
    def proposed(candidate: str, parents: tuple[str, ...], one: Harness) -> CandidateProposed:
        return CandidateProposed(
            island="i1",
            candidate=candidate,
            round=len(parents),
            parents=parents,
            harness=one.digest,
            mutator="operators",
            change=Change(title="an edit"),
        )

    def scored(candidate: str, split: str) -> CandidateScored:
        return CandidateScored(
            island="i1", candidate=candidate, split=split, scores={f"{split}-1": SCORE}
        )

    def judged(candidate: str, verdict: Verdict) -> CandidateJudged:
        return CandidateJudged(
            island="i1", candidate=candidate, round=1, verdict=verdict, reason="because"
        )

    return [
        RunStarted(
            name="tiny",
            plan=plain(RunPlan()),
            search=("search-1",),
            validation=("validation-1",),
            test=(),
            model="local",
        ),
        proposed("i1.0", (), SEED),
        IslandFounded(island="i1", mutator="operators", root="i1.0", search=("search-1",)),
        scored("i1.0", "search"),
        scored("i1.0", "validation"),
        judged("i1.0", Verdict.SEED),
        proposed("i1.1", ("i1.0",), CHILD),
        scored("i1.1", "search"),
        judged("i1.1", Verdict.ADMITTED),
    ]


def make_run(path: Path, *, finished: bool) -> Path:
    store = RunStore.create(path, path.name, plain(RunPlan()), clock=FixedClock())
    with store:
        store.put_harness("i1.0", SEED, (), "a seed")
        store.put_harness("i1.1", CHILD, ("i1.0",), "an edit")
        ends: list[Event] = [
            WinnerFrozen(candidate="i1.1", island="i1", rule="one_se", front=("i1.1",)),
            RunEnded(reason="rounds", searched=True),
        ]
        store.append("run", store.claim("run"), [*events(), *(ends if finished else [])])
    return path


def test_a_run_is_meant_by_path_or_by_name_also_inside_a_multirun() -> None:
    one = make_run(Path("runs/one"), finished=True)
    job = make_run(Path("multirun/study/0-seed=1"), finished=True)
    assert locate(str(one), Path("runs")) == one
    assert locate("one", Path("runs")) == one
    assert locate("0-seed=1", Path("runs")) == job


def test_how_far_a_run_has_come_decides_what_a_multirun_does_with_it() -> None:
    assert progress_of(Path("runs/none")) is RunProgress.ABSENT
    assert progress_of(make_run(Path("runs/a"), finished=False)) is RunProgress.STOPPED
    assert progress_of(make_run(Path("runs/b"), finished=True)) is RunProgress.FINISHED
    Path("runs/c").mkdir()
    with pytest.raises(RunError):
        progress_of(Path("runs/c"))


def test_the_winner_is_exported_with_what_to_do_next() -> None:
    path = make_run(Path("runs/one"), finished=True)
    words = export(path, "", Path("out"))
    assert Harness.from_dir(Path("out")).digest == CHILD.digest
    assert "python3 main.py" in words and "seeds=out" in words


def test_a_named_candidate_is_exported_from_a_run_that_goes_on() -> None:
    path = make_run(Path("runs/one"), finished=False)
    export(path, "i1.0", Path("out"))
    assert Harness.from_dir(Path("out")).digest == SEED.digest


def test_an_export_never_writes_over_files() -> None:
    path = make_run(Path("runs/one"), finished=True)
    Path("out").mkdir()
    Path("out/mine.txt").write_text("keep")
    with pytest.raises(RunError, match="new or empty"):
        export(path, "", Path("out"))
    assert sorted(p.name for p in Path("out").iterdir()) == ["mine.txt"]


def test_an_unknown_candidate_is_refused_with_the_nearest() -> None:
    path = make_run(Path("runs/one"), finished=True)
    with pytest.raises(RunError, match=r"such as 'i1\.[01]'"):
        export(path, "i1.9", Path("out"))


def test_a_run_without_a_winner_names_a_candidate_to_export() -> None:
    path = make_run(Path("runs/one"), finished=False)
    with pytest.raises(RunError, match=r"i1\.0"):
        export(path, "", Path("out"))


def test_runs_are_listed_with_their_state() -> None:
    make_run(Path("runs/one"), finished=True)
    make_run(Path("multirun/study/0-seed=1"), finished=False)
    lines = runs_text((Path("runs"), Path("multirun"))).splitlines()
    assert any(line.startswith("runs/one ") and "winner i1.1" in line for line in lines)
    assert any("0-seed=1" in line and "interrupted" in line for line in lines)


def test_a_damaged_run_is_listed_with_what_is_wrong_and_hides_no_other() -> None:
    make_run(Path("runs/one"), finished=True)
    journal = make_run(Path("runs/two"), finished=True) / "journal.jsonl"
    journal.write_text("not a record\n" + journal.read_text())
    lines = runs_text((Path("runs"),)).splitlines()
    assert any(line.startswith("runs/one ") and "finished" in line for line in lines)
    assert any(line.startswith("runs/two ") and "journal" in line for line in lines)


@pytest.mark.parametrize("gone", ["attempts", "journal.jsonl", "run.json"])
def test_a_run_with_a_part_that_is_gone_hides_no_other(gone: str) -> None:
    make_run(Path("runs/one"), finished=True)
    part = make_run(Path("runs/two"), finished=True) / gone
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    lines = runs_text((Path("runs"),)).splitlines()
    assert any(line.startswith("runs/one ") and "finished" in line for line in lines)
    assert gone == "run.json" or any(
        line.startswith("runs/two ") and gone in line for line in lines
    )


def test_status_and_report_come_in_their_forms(capsys: pytest.CaptureFixture[str]) -> None:
    make_run(Path("runs/one"), finished=True)
    assert main(["status", "one"]) == OK
    assert "finished" in capsys.readouterr().out
    assert main(["status", "one", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["state"] == "finished"
    assert main(["report", "one", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["winner"] == "i1.1"
    assert main(["report", "one", "--markdown"]) == OK
    assert capsys.readouterr().out.startswith("# ")
    assert "i1.1" in report_text(Path("runs/one"), form="text")


def test_the_report_says_where_the_winner_lies_and_how_to_take_it() -> None:
    place = report_of(make_run(Path("runs/one"), finished=True)).place
    assert "harnesses.git" in place.harness
    assert place.commands[0] == "milo export runs/one my-harness"
    stopped = report_of(make_run(Path("runs/two"), finished=False)).place
    assert stopped.commands[0] == "milo resume runs/two"
    with RunStore.open(Path("runs/two"), clock=FixedClock()) as store:
        living = report_of(Path("runs/two")).place
        assert living.commands[0] == "milo view runs/two", "nobody resumes a run that goes on"
        store.append("run", store.claim("run"), [RunEnded(reason="rounds", searched=True)])
    assert not any("resume" in word for word in report_of(Path("runs/two")).place.commands)


def test_export_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    make_run(Path("runs/one"), finished=True)
    assert main(["export", "one", "i1.0", "out"]) == OK
    assert main(["export", "one", "out"]) == USER_ERROR
    assert "new or empty" in capsys.readouterr().err
