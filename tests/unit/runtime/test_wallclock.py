"""Wall-clock time over several sessions."""

from __future__ import annotations

from milo.core.events import Event, Record, RunEnded, RunResumed
from milo.runtime.wallclock import WallClock


def record(time: float, event: Event) -> Record:
    return Record(seq=0, time=time, shard="run", epoch=1, event=event)


def test_a_clock_without_records_has_no_zero() -> None:
    assert WallClock().zero is None


def test_time_between_sessions_does_not_count() -> None:
    clock = WallClock()
    clock.apply(record(100.0, RunResumed()))
    clock.apply(record(160.0, RunEnded(reason="", searched=True)))
    clock.apply(record(1000.0, RunResumed()))
    assert clock.zero == 940.0
