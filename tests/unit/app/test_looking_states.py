"""Every command that looks at a run, on one that is alive, one that has ended and one that was
killed in the middle of a write: from the records alone, in words and as data."""

from __future__ import annotations

import json
import pydoc
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_inspect import CHILD, SEED, make_run

from milo.app.cli import OK, main
from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage
from milo.core.budget import Budget
from milo.core.evidence import Exchange, Trace
from milo.core.harness import Harness
from milo.store import RunReader, RunStore
from milo.store.codec import encode
from milo.store.lock import Owner, boot_id
from milo.views.plain import PlainView
from milo.views.progress_file import NotedView
from milo.views.view import Progress

pytestmark = pytest.mark.usefixtures("workdir")
STATES = ("live", "finished", "dead")
NOW = 1_700_000_100.0
TASK = "i1.1:search-1"


class Now:
    def now(self) -> float:
        return NOW


def attempt(store: RunStore) -> None:
    exchange = Exchange(
        request={"messages": [{"role": "user", "content": "solve it"}]},
        response={"choices": [{"message": {"content": "the answer"}}]},
        status=200,
        seconds=1.5,
    )
    trace = store.put_trace(Trace(exchanges=(exchange,), stdout="it ran", report="right"))
    outcome = Outcome(
        key=AttemptKey(
            harness=CHILD.digest, task="search-1", task_digest="d", model="local", index=0
        ),
        status=Status.COMPLETED,
        reward=1.0,
        resolved=True,
        usage=Usage(uncached_input=9, output=1, calls=1, dollars=None),
        timings=Timings(agent_s=1.0),
        trace=trace,
    )
    store.append_attempts([outcome])


def written(path: Path, *, finished: bool) -> Path:
    make_run(path, finished=finished)
    with RunStore.open(path, clock=Now()) as store:
        attempt(store)
    return path


@pytest.fixture(params=STATES)
def state(request: pytest.FixtureRequest, workdir: Path) -> Iterator[str]:
    """A run called `one` in the state that is named; `two` beside it has ended."""
    written(Path("runs/two"), finished=True)
    path = written(Path("runs/one"), finished=request.param == "finished")
    if request.param == "live":
        with RunStore.open(path, clock=Now()):
            yield request.param
        return
    if request.param == "dead":
        killed = Owner(pid=2**22 - 7, host=socket.gethostname(), boot=boot_id(), started="1")
        (path / "lock").write_bytes(encode(killed))
        with (path / "journal.jsonl").open("ab") as journal:
            journal.write(b'{"seq": 9, "time": 17')
    yield request.param


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == OK
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(said(capsys, *words, "--json"))


def files_of(run: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(run.rglob("*")) if p.is_file()}


def test_status_tells_the_state_and_how_to_go_on(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"live": "running", "finished": "finished", "dead": "interrupted"}[state]
    found = data(capsys, "status", "one")
    assert found["state"] == told
    assert found["coverage"] == {"attempted": 1, "valid": 1}
    assert found["spend"]["target"]["dollars"] is None
    words = said(capsys, "status", "one")
    assert told in words and "10 tokens in 1 call, unknown" in words
    assert ("milo resume runs/one" in words) == (state == "dead")


def test_a_report_advises_to_resume_what_is_dead_and_nothing_else(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = said(capsys, "report", "one")
    assert ("milo resume runs/one" in words) == (state == "dead")
    assert ("that was not written to its end" in " ".join(words.split())) == (state == "dead")


def test_a_copy_of_it_is_driven_by_nobody(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree("runs/one", "runs/copy")
    told = "finished" if state == "finished" else "interrupted"
    assert data(capsys, "status", "copy")["state"] == told
    assert data(capsys, "status", "one")["run"] == "runs/one"


def test_runs_lists_it_with_its_state(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = {"live": "running", "finished": "finished", "dead": "interrupted"}[state]
    found = {line["run"]: line for line in data(capsys, "runs")}
    assert found["runs/one"]["state"] == told and found["runs/two"]["state"] == "finished"
    assert told in next(s for s in said(capsys, "runs").splitlines() if s.startswith("runs/one"))


def test_show_tells_a_candidate_and_lists_them_all(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(capsys, "show", "one", "i1.1")
    assert found["path"] == ["i1.0", "i1.1"] and found["verdict"] == "admitted"
    assert found["reason"] == "because" and found["tasks"][0]["task"] == "search-1"
    assert "+print('child')" in found["dossier"]["patches"][0]["patch"]
    words = said(capsys, "show", "one", "i1.1")
    for part in ("admitted: because", "i1.0 → i1.1", "search-1", "+print('child')"):
        assert part in words
    assert [c["candidate"] for c in data(capsys, "show", "one")] == ["i1.0", "i1.1"]
    assert "i1.1" in said(capsys, "show", "one")


def test_diff_compares_within_it_and_with_another_run(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "-print('seed')" in data(capsys, "diff", "one:i1.0", "i1.1")["patch"]
    assert data(capsys, "diff", "two", "one:i1.1")["patch"] == ""
    assert "+print('child')" in said(capsys, "diff", "one:i1.0", "i1.1")


def test_trace_tells_an_attempt_and_lists_them(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(capsys, "trace", "one", TASK)
    assert found["trace"]["stdout"] == "it ran" and found["attempt"]["reward"] == 1.0
    assert "the answer" in said(capsys, "trace", "one", TASK)
    assert [a["key"] for a in data(capsys, "trace", "one", "i1.1")] == ["search-1"]


def test_export_writes_a_harness_and_says_where(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(capsys, "export", "one", "i1.0", "out")
    assert found["candidate"] == "i1.0" and found["harness"] == SEED.digest
    assert found["directory"] == "out" and found["entry"] == ["python3", "main.py"]
    assert Harness.from_dir(Path("out")).digest == SEED.digest
    assert "is in more" in said(capsys, "export", "one", "i1.1", "more")


def test_report_and_page_tell_what_is_on_record(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(capsys, "report", "one")
    assert bool(found["ended"]) == (state == "finished")
    assert any("has not ended" in w for w in found["warnings"]) == (state != "finished")
    assert "i1.1" in said(capsys, "report", "one")
    said(capsys, "report", "one", "--html", "page.html")
    assert Path("page.html").read_text().startswith("<!doctype html>")


def test_looking_changes_nothing(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_of(Path("runs/one"))
    for words in (
        ["status", "one"],
        ["runs"],
        ["show", "one", "i1.1"],
        ["diff", "one:i1.0", "i1.1"],
        ["trace", "one", TASK],
        ["export", "one", "i1.1", "out"],
        ["report", "one", "--html", "page.html"],
    ):
        said(capsys, *words)
    after = files_of(Path("runs/one"))
    assert {path: after.get(path) for path in before} == before


def test_a_live_run_tells_its_queue_while_its_owner_says_so(
    workdir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(Path("runs/one"), finished=False)
    monkeypatch.setattr("milo.app.inspect.time.time", lambda: NOW)
    with RunStore.open(path, clock=Now()), Path("log").open("w") as log:
        view = NotedView(PlainView(log), path, lambda: NOW)
        with RunReader(path) as reader:
            view.start("one", tuple(reader.records()))
        view.progress(Progress(budget=Budget(), slots_busy=3, slots_total=4, queued=7))
        found = data(capsys, "status", "one")
        assert (found["queued"], found["in_flight"]) == (7, 3)
        view.stop()
    assert data(capsys, "status", "one")["queued"] is None


def test_a_trace_is_paged_on_a_terminal(
    workdir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace is longer than a screen; without a pager its beginning is gone."""
    written(Path("runs/one"), finished=True)
    pages: list[str] = []
    monkeypatch.setattr(pydoc, "pager", pages.append)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert said(capsys, "trace", "one", TASK) == ""
    assert len(pages) == 1 and "the answer" in pages[0] and "it ran" in pages[0]
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "the answer" in said(capsys, "trace", "one", TASK)
    assert len(pages) == 1
