"""Traces by content, sessions by scope, and what a replay asks of both."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_builders import (
    EXCHANGE,
    create,
    founding,
    key,
    missing,
    valid,
)

from milo.core.errors import (
    RecordError,
    ReplayMiss,
)
from milo.core.events import (
    Consulted,
    IslandClosed,
    MoveApplied,
)
from milo.core.evidence import Trace
from milo.core.moves import Consultation, Diagnosis, Reassign
from milo.store import (
    ReplaySource,
    RunReader,
)

# --- traces and sessions -------------------------------------------------------------------------


def test_equal_traces_are_one_file(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        first = store.put_trace(Trace(stdout="x", changed={"a": "1", "b": "2"}))
        again = store.put_trace(Trace(stdout="x", changed={"b": "2", "a": "1"}))
        assert first == again != store.put_trace(Trace(stdout="y"))
        assert len(list(store.traces.root.rglob("*.gz"))) == 2
        assert first in store.traces and "f" * 64 not in store.traces
        assert "../../etc" not in store.traces


def test_a_damaged_trace_is_refused_and_an_empty_one_written_anew(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        trace = Trace(stdout="long " * 100)
        digest = store.put_trace(trace)
        path = store.traces.path(digest)
        packed = path.read_bytes()
        for damaged in (packed[:-9], b"", packed[:20] + b"\1" + packed[21:]):
            path.write_bytes(damaged)
            with pytest.raises(RecordError, match=digest[:12]):
                store.get_trace(digest)
        path.write_bytes(b"")
        assert store.put_trace(trace) == digest
        assert store.get_trace(digest) == trace
        other = store.put_trace(Trace())
        path.write_bytes(store.traces.path(other).read_bytes())
        with pytest.raises(RecordError, match="does not match its hash"):
            store.get_trace(digest)
        for wrong in ("0" * 64, "../x"):
            with pytest.raises(RecordError):
                store.get_trace(wrong)


def test_the_newest_session_of_a_scope_counts(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        store.put_session("s", Trace(stdout="cut short"))
        for _ in range(2):
            store.put_session("s", Trace(stdout="whole"))
    assert len((tmp_path / "sessions.jsonl").read_bytes().splitlines()) == 2
    with RunReader(tmp_path) as reader:
        digest = reader.sessions.get("s")
        assert digest and reader.traces.get(digest).stdout == "whole"
        assert reader.sessions.get("t") is None
        with pytest.raises(RecordError, match="reading only"):
            reader.sessions.put("s", "0" * 64)
        with pytest.raises(RecordError, match="reading only"):
            reader.traces.put(Trace())


# --- replay --------------------------------------------------------------------------------------


def test_a_recorded_run_answers_what_a_replay_asks(tmp_path: Path) -> None:
    move = Reassign(island="a", mutator="other")
    answer = Consultation(
        island="a", round=2, diagnosis=Diagnosis.DRY_MUTATOR, words="dry", moves=(move,)
    )
    with create(tmp_path) as store:
        events = [*founding(), MoveApplied(island="a", round=3, move=move)]
        store.append("a", store.claim("a"), events)
        store.append("o", store.claim("o"), [Consulted(consultation=answer)])
        closed = IslandClosed(island="a", round=5, reason="budget")
        store.append("a", store.claim("a"), [closed])
        digest = store.put_trace(Trace(exchanges=(EXCHANGE,)))
        store.append_attempts([valid(key(0), trace=digest), missing(key(1))])
        store.put_session("mutator/a/3", Trace(exchanges=(EXCHANGE, EXCHANGE)))
    source = ReplaySource(tmp_path)
    assert source.outcome(key(0)) == valid(key(0), trace=digest)
    assert source.outcome(key(1)) == missing(key(1))
    assert source.outcome(key(9)) is None
    assert source.exchanges(str(key(0))) == (EXCHANGE,)
    assert source.exchanges("mutator/a/3") == (EXCHANGE, EXCHANGE)
    assert source.moves("a", 3) == (move,)
    assert source.moves("a", 2) == ()
    assert source.closed("a") == (5, "budget")
    assert source.closed("b") is None
    assert source.consultation("a", 2) == answer
    assert source.consultation("a", 3) is None
    for unseen in (str(key(9)), "mutator/a/4"):
        with pytest.raises(ReplayMiss, match="no session"):
            source.exchanges(unseen)
    assert source.run.name == "first"
    source.close()
