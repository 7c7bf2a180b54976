"""The server of the replay page: who may ask, and what it answers where a run can't be read."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from milo.core.errors import RecordError
from milo.core.plan import RunPlan
from milo.store import RunReader, RunStore, encode_plan
from milo.views.film import film_of
from milo.views.serving import LiveFilm, PageServer


class Clock:
    def now(self) -> float:
        return 5000.0


@pytest.fixture
def run(make_story: Any, tmp_path: Path) -> Path:
    path = tmp_path / "run"
    store = RunStore.create(path, "run", encode_plan(RunPlan()), clock=Clock(), min_free_bytes=0)
    with store:
        epoch = store.claim("run")
        for record in make_story("finished").records:
            store.append("run", epoch, [record.event])
    return path


@pytest.fixture
def port(run: Path) -> Iterator[int]:
    server = PageServer(LiveFilm(run, lambda: None, lambda: 0.0))
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield int(server.url.rstrip("/").rpartition(":")[2])
    server.stop()
    thread.join()


def ask(port: int, path: str, host: str = "") -> tuple[int, bytes]:
    caller = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    caller.request("GET", path, headers={"Host": host} if host else {})
    answer = caller.getresponse()
    found = answer.status, answer.read()
    caller.close()
    return found


def test_a_film_that_grows_group_by_group_is_the_film_of_the_whole(run: Path) -> None:
    """Also past a record that is just being written, and without reading what it has read."""
    journal = run / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    with RunReader(run) as reader:
        whole = [json.loads(json.dumps(frame)) for frame in film_of(reader.records())]
    journal.write_bytes(b"")
    film = LiveFilm(run, lambda: None, lambda: 0.0)
    for upto in (1, 7, 8, len(lines)):
        torn = lines[upto][:20] if upto < len(lines) else b""
        journal.write_bytes(b"".join(lines[:upto]) + torn)
        assert json.loads(film.film(0))["frames"] == whole[:upto]
        lines[0] = lines[0].replace(b"run_started", b"run_forgets")


def test_only_who_asks_this_machine_by_its_name_is_answered(port: int) -> None:
    """A page of another site could point a name of its own here, and read the run."""
    for host in ("127.0.0.1", f"127.0.0.1:{port}", "localhost", f"localhost:{port}"):
        assert ask(port, "/", host)[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "[broken", "127.0.0.1.evil.example"):
        assert ask(port, "/film", host)[0] == 403


def test_frames_come_from_a_number_on_and_a_candidate_by_its_name(port: int) -> None:
    whole = json.loads(ask(port, "/film")[1])["frames"]
    assert json.loads(ask(port, f"/film?from={len(whole) - 2}")[1])["frames"] == whole[-2:]
    assert json.loads(ask(port, "/film?from=nonsense")[1])["frames"] == whole
    assert json.loads(ask(port, "/details/i2.2")[1])["candidate"] == "i2.2"


@pytest.mark.parametrize(
    "path", ["/details/i9.9", "/trace/" + "0" * 64, "/trace/..%2f..%2frun.json", "/run.json"]
)
def test_what_is_not_there_is_not_found(port: int, path: str) -> None:
    assert ask(port, path)[0] == 404


def test_a_run_that_is_removed_while_it_is_watched_is_said_to_the_page(
    port: int, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(run)
    status, words = ask(port, "/film")
    assert status == 500 and b"journal.jsonl" in words
    assert capsys.readouterr().err == ""


def test_a_run_that_cannot_be_read_is_not_served(run: Path) -> None:
    journal = run / "journal.jsonl"
    journal.write_text("not a record\n" + journal.read_text())
    with pytest.raises(RecordError, match="line 1"):
        LiveFilm(run, lambda: None, lambda: 0.0)
