"""`milo arena`: what runs found, the archive's status, verifying and exporting constructions."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from milo.app.arena import arena_seeds, status_text
from milo.app.arena_runs import found_in, gathered
from milo.app.cli import OK, USER_ERROR, main
from milo.core.attempt import AttemptKey, Outcome, Status
from milo.core.errors import RecordError
from milo.core.events import CandidateProposed, CandidateScored, Change, RunResumed
from milo.core.evidence import Trace
from milo.core.fitness import TaskScore
from milo.core.objective import Objective
from milo.store import RunReader, RunStore
from milo.suites.arena.archive import Archive, Provenance
from milo.suites.arena.problems.catalogue import problems
from milo.suites.arena.problems.packing import packed
from milo.suites.arena.problems.problem import Problem, Published
from milo.suites.arena.tasks import published, start_of
from milo.views.plain import PlainView

pytestmark = pytest.mark.usefixtures("workdir")

OVERLAP, PACKING = "erdos-min-overlap", "circle-packing"
TASK = f"{OVERLAP}-003"
HAUGLAND, ALPHA, TTT = "erdos_haugland_51", "erdos_alphaevolve_95", "erdos_ttt_600"
VALUES = {HAUGLAND: 0.38092685343308713, ALPHA: 0.38092303510845016, TTT: 0.3808753232177187}


@dataclass
class Hand:
    """A clock that its test moves."""

    time: float = 1000.0

    def now(self) -> float:
        return self.time


def record(
    store: RunStore, clock: Hand, number: int, name: str, value: float | None = None
) -> None:
    """One candidate with one attempt that found a construction; `value` is a false claim."""
    harness, candidate = str(number) * 64, f"i1.{number}"
    claimed = VALUES[name] if value is None else value
    objective = Objective(OVERLAP, claimed, 0.5, 0.3808568)
    trace = Trace(
        report=f"{objective.line}\nin words",
        verifier_output=f"noise\n{packed(OVERLAP, claimed, published(name))}\n",
    )
    key = AttemptKey(harness=harness, task=TASK, task_digest="d", model="none", index=0)
    digest = store.put_trace(trace)
    store.append_attempts([Outcome(key=key, status=Status.COMPLETED, reward=0.5, trace=digest)])
    score = TaskScore(n=1, reward=0.5, resolved=0, tokens=0.0, latency_s=1.0)
    proposed = CandidateProposed(
        island="i1",
        candidate=candidate,
        round=number,
        parents=(),
        harness=harness,
        mutator="arena",
        change=Change(title="t"),
    )
    scored = CandidateScored(island="i1", candidate=candidate, split="search", scores={TASK: score})
    clock.time += 60.0
    store.append("i1", store.claim("i1"), [proposed, scored])


def arena_run(path: Path, *names: str, suite: str = "arena") -> Path:
    clock = Hand()
    path.parent.mkdir(parents=True, exist_ok=True)
    plan = {"suite": {"name": suite}}
    with RunStore.create(path, path.name, plan, clock=clock) as store:
        for number, name in enumerate(names):
            record(store, clock, number, name)
    return path


def made(task: str = "") -> Provenance:
    return Provenance(source="file", when=1.0, task=task)


# --- what runs found ---------------------------------------------------------------------------


def test_a_runs_constructions_come_with_candidate_attempt_task_and_time() -> None:
    run = arena_run(Path("runs/one"), HAUGLAND, TTT)
    first, second = found_in(run)
    assert (first.held.value, second.held.value) == (VALUES[HAUGLAND], VALUES[TTT])
    assert np.array_equal(second.held.construction, published(TTT))
    assert second.provenance.source == "one"
    assert second.provenance.candidate == "i1.1"
    assert second.provenance.task == TASK
    assert second.provenance.attempt.startswith("1" * 16)
    assert (first.provenance.when, second.provenance.when) == (1060.0, 1120.0)


def test_a_folder_that_is_no_run_on_open_problems_holds_nothing() -> None:
    assert list(found_in(arena_run(Path("runs/other"), TTT, suite="deskwork"))) == []
    Path("runs/empty").mkdir()
    Path("runs/empty/plan.json").write_text("{}")
    assert list(found_in(Path("runs/empty"))) == []


def test_gathering_enters_only_what_is_better_and_twice_changes_nothing() -> None:
    arena_run(Path("runs/one"), ALPHA, HAUGLAND)
    arena_run(Path("multirun/two/0"), TTT)
    places = (Path("runs"), Path("multirun"))
    archive = gathered(Path("arena"), places).archive
    assert [one.value for one in archive.records] == [VALUES[ALPHA], VALUES[TTT]]
    text = archive.path.read_text()
    gathered(Path("arena"), places)
    assert archive.path.read_text() == text


def test_a_false_claim_of_a_run_is_verified_and_not_believed() -> None:
    clock = Hand()
    with RunStore.create(Path("lie"), "lie", {"suite": {"name": "arena"}}, clock=clock) as store:
        record(store, clock, 0, HAUGLAND, value=0.3)
    best = gathered(Path("arena"), (Path("."),)).archive.best(OVERLAP)
    assert best is not None
    assert best.value == VALUES[HAUGLAND]


def test_a_run_whose_trace_is_lost_still_gives_the_rest() -> None:
    run = arena_run(Path("runs/one"), ALPHA, TTT)
    lost = next(iter(sorted((run / "traces").rglob("*.json.gz"))))
    lost.unlink()
    assert len(list(found_in(run))) == 1


def test_a_run_whose_records_are_damaged_is_said_and_stops_no_other() -> None:
    damaged = arena_run(Path("runs/damaged"), ALPHA, TTT)
    arena_run(Path("runs/whole"), HAUGLAND)
    for trace in (damaged / "traces").rglob("*.json.gz"):
        trace.write_bytes(b"no trace")
    *table, said = status_text(as_json=False).splitlines()
    assert "whole i1.0" in table[1]
    assert said.startswith("run runs/damaged was read in part: ")


# --- the objective against wall-clock ----------------------------------------------------------


def test_the_curve_of_a_run_starts_at_the_frozen_value_and_falls_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arena_run(Path("runs/one"), HAUGLAND, ALPHA, HAUGLAND, TTT)
    assert main(["arena", "curve", "one", "--json"]) == OK
    steps = json.loads(capsys.readouterr().out)[OVERLAP]
    # The clock begins with the first record, a minute after the run was created.
    assert [step["seconds"] for step in steps] == [0.0, 0.0, 60.0, 180.0]
    assert [step["value"] for step in steps] == [0.5, *(VALUES[n] for n in (HAUGLAND, ALPHA, TTT))]
    assert [step["who"] for step in steps] == ["", "i1.0", "i1.1", "i1.3"]
    assert main(["arena", "curve", "one"]) == OK
    assert f"180.0 s  {VALUES[TTT]!r}  i1.3" in capsys.readouterr().out


def test_the_curves_clock_is_the_logs_and_stands_still_while_a_run_is_stopped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, clock = arena_run(Path("runs/one"), HAUGLAND, ALPHA), Hand(time=9000.0)
    with RunStore.open(run, clock=clock) as store:
        store.append("run", store.claim("run"), [RunResumed()])
        record(store, clock, 2, TTT)
    assert main(["arena", "curve", "one", "--json"]) == OK
    steps = json.loads(capsys.readouterr().out)[OVERLAP]
    assert [step["seconds"] for step in steps] == [0.0, 0.0, 60.0, 120.0]
    log = io.StringIO()
    with RunReader(run) as reader:
        PlainView(log).update(list(reader.records()))
    assert "[2:00] i1: i1.2" in log.getvalue().splitlines()[-1]


def test_a_run_on_another_suite_has_no_curve(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("runs/plain")
    path.parent.mkdir()
    RunStore.create(path, "plain", {"suite": {"name": "deskwork"}}, clock=Hand()).close()
    assert main(["arena", "curve", "plain"]) == OK
    assert "holds no objective" in capsys.readouterr().out


# --- status ------------------------------------------------------------------------------------


def test_status_tells_every_problem_ours_and_the_margin() -> None:
    arena_run(Path("runs/one"), TTT)
    rows = {row["problem"]: row for row in json.loads(status_text(as_json=True))}
    assert set(rows) == set(problems())
    ours = rows[OVERLAP]
    assert ours["ours"] == VALUES[TTT]
    assert ours["margin"] == pytest.approx(0.3808568 - VALUES[TTT])
    assert (ours["by"], ours["asked"], ours["from"]) == ("MILO paper", 1e-7, "one i1.0")
    assert (ours["proof"], rows[PACKING]["ours"]) == ("", None)
    table = status_text(as_json=False).splitlines()
    assert len(table) == 1 + len(problems())
    assert table[1].startswith("erdos-min-overlap  ")


def test_status_tells_what_is_best_known_of_every_problem_as_it_was_printed() -> None:
    rows = json.loads(status_text(as_json=True))
    assert [row["problem"] for row in rows if not row["printed"]] == []
    lines = status_text(as_json=False).splitlines()
    for row, line in zip(rows, lines[1:], strict=True):
        assert line.split()[1] == row["printed"]
        assert float(row["printed"]) == row["best known"]
    known = {row["problem"]: row["printed"] for row in rows}
    assert known["heilbronn-convex-13"] == "0.0309368890"


def test_status_takes_runs_that_lie_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    arena_run(Path("far/one"), ALPHA)
    arena_run(Path("farther/two"), TTT)
    assert gathered(Path("arena"), (Path("runs"),)).archive.best(OVERLAP) is None
    assert main(["arena", "status", "far/one", "--json"]) == OK
    ours = {row["problem"]: row["from"] for row in json.loads(capsys.readouterr().out)}
    assert ours[OVERLAP] == "one i1.0"
    assert main(["arena", "status", "farther"]) == OK
    assert "two i1.0" in capsys.readouterr().out
    best = Archive(Path("arena")).best(OVERLAP)
    assert best is not None and best.value == VALUES[TTT]


def test_a_named_run_that_is_none_on_open_problems_is_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arena_run(Path("far/plain"), suite="deskwork")
    assert main(["arena", "status", "far/plain"]) == USER_ERROR
    assert "expected a run on the suite arena" in capsys.readouterr().err
    assert main(["arena", "status", "nowhere"]) == USER_ERROR
    assert "run 'nowhere'" in capsys.readouterr().err


def test_status_proves_a_margin_or_says_why_it_can_not(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive(Path("arena"))
    archive.add("second-autocorrelation-inequality", np.array([1.0]), made())
    archive.add(PACKING, start_of(problems()[PACKING], 0).construction, made())
    weaker = {name: _published_at_zero(name) for name in problems()}
    monkeypatch.setattr("milo.app.arena.problems", lambda: weaker)
    rows = {row["problem"]: row for row in json.loads(status_text(as_json=True))}
    assert rows["second-autocorrelation-inequality"]["proof"] == "exact"
    assert rows[PACKING]["proof"] == "exact"


def _published_at_zero(name: str) -> Problem:
    return replace(problems()[name], published=(Published(who="nobody", printed="0.1"),))


def test_a_changed_archive_stops_status_with_the_line() -> None:
    Archive(Path("arena")).add(OVERLAP, published(ALPHA), made())
    file = Path("arena/records.jsonl")
    file.write_text(file.read_text().replace("0.3809230", "0.3709230"))
    with pytest.raises(RecordError, match="line 1"):
        status_text(as_json=False)


# --- seeds -------------------------------------------------------------------------------------


def test_the_seeds_are_harnesses_and_one_more_where_there_is_a_model() -> None:
    without, having = arena_seeds(with_model=False), arena_seeds(with_model=True)
    assert [seed.name for seed in having] == [*(seed.name for seed in without), "reviser"]
    assert len({seed.harness.digest for seed in having}) == len(having)
    assert all(seed.harness.manifest.smoke for seed in having)
