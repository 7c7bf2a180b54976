"""`milo show`, `diff`, `trace` and `runs --json`: everything about a run from its records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_inspect import CHILD, make_run

from milo.app.cli import OK, USER_ERROR, main
from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage
from milo.core.evidence import Exchange, Trace
from milo.core.lineage import Node
from milo.store import RunReader, RunStore
from milo.views.showing import Side, difference_of, difference_sections

pytestmark = pytest.mark.usefixtures("workdir")


class Now:
    def now(self) -> float:
        return 1_700_000_100.0


@pytest.fixture
def make_node(run: Path) -> Callable[[], Node]:
    def node() -> Node:
        with RunReader(run) as reader:
            return reader.population().lineage["i1.1"]

    return node


@pytest.fixture
def run(workdir: Path) -> Path:
    """A finished run with one attempt of its winner, and a session of its mutator."""
    path = make_run(Path("runs/one"), finished=True)
    exchange = Exchange(
        request={"messages": [{"role": "user", "content": "solve\x1b[2J it"}]},
        response={"choices": [{"message": {"content": "the answer"}}]},
        status=200,
        seconds=1.5,
    )
    with RunStore.open(path, clock=Now()) as store:
        digest = store.put_trace(Trace(exchanges=(exchange,), stdout="it ran", report="right"))
        store.put_session("i1.r1", Trace(exchanges=(exchange,)))
        key = AttemptKey(
            harness=CHILD.digest, task="search-1", task_digest="d", model="local", index=0
        )
        store.append_attempts(
            [
                Outcome(
                    key=key,
                    status=Status.COMPLETED,
                    reward=1.0,
                    resolved=True,
                    usage=Usage(uncached_input=9, output=1, calls=1),
                    timings=Timings(agent_s=1.0),
                    trace=digest,
                )
            ]
        )
    return path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == OK
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(said(capsys, *words, "--json"))


def test_a_candidate_is_shown_with_why_it_was_admitted_its_path_tasks_and_patch(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = said(capsys, "show", "one", "i1.1")
    for part in ("admitted: because", "i1.0 → i1.1", "search-1", "+print('child')"):
        assert part in words
    found = data(capsys, "show", "one", "i1.1")
    assert found["path"] == ["i1.0", "i1.1"]
    assert found["tasks"] == [
        {"task": "search-1", "split": "search", "n": 1, "reward": 1.0, "before": 1.0}
    ]
    assert "+print('child')" in found["dossier"]["patches"][0]["patch"]


def test_a_run_alone_lists_its_candidates(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "i1.1" in said(capsys, "show", "one")
    assert [c["candidate"] for c in data(capsys, "show", "one")] == ["i1.0", "i1.1"]


def test_two_harnesses_are_compared_by_source_and_by_common_tasks(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(capsys, "diff", "one:i1.0", "i1.1")
    assert found["tasks"] == {"search": 1}
    assert "-print('seed')" in found["patch"] and "+print('child')" in found["patch"]
    assert "-print('seed')" in said(capsys, "diff", "one:i1.0", "one")
    assert main(["export", "one", "i1.0", "out"]) == OK
    capsys.readouterr()
    assert data(capsys, "diff", "out", "one:i1.0")["patch"] == ""


@pytest.mark.parametrize(
    ("model", "digest", "compared", "doubt"),
    [
        ("local", "1", True, ""),
        ("other", "1", True, "the models differ: other against local"),
        ("local", "2", False, "1 task of the same name with other content: left out"),
        ("local", "", True, ""),
    ],
)
def test_scores_of_two_runs_are_compared_only_over_the_same_tasks_and_doubted_over_two_models(
    model: str, digest: str, compared: bool, doubt: str, make_node: Callable[[], Node]
) -> None:
    first = Side(name="a", node=make_node(), model="local", tasks={"search-1": "1"})
    tasks = {"search-1": digest} if digest else {}
    second = Side(name="b", node=make_node(), model=model, tasks=tasks)
    found = difference_of(first, second, "")
    assert ("search" in found.paired) == compared
    assert found.notes == ((doubt,) if doubt else ())
    titles = [section.title for section in difference_sections(found)]
    assert ("Warnings" in titles) == bool(doubt)


def test_a_trace_tells_the_exchange_and_hides_no_escape_sequence_in_it(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = said(capsys, "trace", "one", "i1.1:search-1")
    for part in ("solve[2J it", "the answer", "it ran", "right", "reward 1.00"):
        assert part in words
    assert "\x1b" not in words
    assert data(capsys, "trace", "one", "i1.1:search-1#0")["trace"]["stdout"] == "it ran"
    assert "i1.1:search-1" in said(capsys, "trace", "one", "i1.1")
    assert "the answer" in said(capsys, "trace", "one", "i1.r1")
    assert data(capsys, "trace", "one") == ["i1.r1"] and "i1.r1" in said(capsys, "trace", "one")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["show", "one", "i1.7"], "such as 'i1."),
        (["trace", "one", "i1.1:search-2"], "such as i1.1:search-1"),
        (["show", "one", "zz"], "as `milo show runs/one` lists them"),
        (["trace", "one", "i1.1:zz"], "as `milo trace RUN i1.1` lists them"),
        (["diff", "nothing", "one"], "run 'nothing'"),
        (["diff", "one:i1.0", "nothing"], "or a candidate of runs/one"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    run: Path, words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == USER_ERROR
    assert hint in capsys.readouterr().err


def test_runs_are_listed_as_data(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(Path("runs/two"), finished=False)
    found = {line["run"]: line for line in data(capsys, "runs")}
    assert found["runs/one"]["winner"] == "i1.1" and found["runs/one"]["state"] == "finished"
    assert found["runs/two"]["state"] == "interrupted"


def test_the_page_is_written_as_one_file_and_leaves_nothing_beside_it(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "page.html" in said(capsys, "report", "one", "--html", "page.html")
    page = Path("page.html").read_text()
    assert page.startswith("<!doctype html>") and "http://" not in page
    assert sorted(p.name for p in Path().glob("*page*")) == ["page.html"]
    assert list(Path().glob(".*.part")) == []
    assert main(["report", "one", "--html", "runs"]) == USER_ERROR
