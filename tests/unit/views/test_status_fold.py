"""What `status` keeps of the past is carried on to exactly what the whole past tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from milo.core.events import Event, Record, RunResumed
from milo.core.moves import Curriculum, Speciate
from milo.store.codec import decode, encode
from milo.testing.synthetic_run import SyntheticRun
from milo.views.status_fold import Folded, StatusFold, fold_of


def recorded(seed: int, candidates: int = 120) -> list[Record]:
    """A synthetic run with every kind of event and move, as records."""
    run = SyntheticRun(
        candidates=candidates,
        rng=np.random.default_rng(seed),
        islands=2,
        tasks=4,
        keep_outcomes=False,
    )
    events = [(shard, event) for shard, group in run.groups() for event in group]
    return [
        Record(seq=seq, time=1000.0 + seq, shard=shard, epoch=1, event=event)
        for seq, (shard, event) in enumerate(events)
    ]


def carried(known: Folded, records: Sequence[Record]) -> Folded | None:
    fold = StatusFold(known)
    for record in records:
        fold.apply(record)
    return None if fold.lost else fold.folded


def regroups(event: Event) -> bool:
    return isinstance(getattr(event, "move", None), Speciate | Curriculum)


@pytest.mark.parametrize("seed", range(4))
def test_a_fold_that_is_carried_on_from_anywhere_is_the_whole_fold_or_says_it_is_lost(
    seed: int,
) -> None:
    records = recorded(seed)
    rng = np.random.default_rng(seed)
    kept = 0
    for at in rng.integers(0, len(records), 25).tolist():
        known = fold_of(records[:at])
        for end in (at, min(at + 3, len(records)), min(at + 40, len(records)), len(records)):
            found = carried(known, records[at:end])
            if found is None:
                assert any(regroups(r.event) or _founds(r.event) for r in records[at:end])
            else:
                assert found == fold_of(records[:end])
                kept += 1
    assert kept > 40


def _founds(event: Event) -> bool:
    return bool(getattr(event, "source", ""))


def test_from_nothing_on_it_folds_a_run_without_moves() -> None:
    records = recorded(1, candidates=8)
    assert not any(regroups(record.event) for record in records)
    assert carried(Folded(), records) == fold_of(records)


def test_a_resume_with_another_budget_is_left_to_the_whole_fold() -> None:
    records = recorded(1, candidates=8)
    last = records[-1]
    for overrides in ((), ("budget.hours=9",)):
        again = replace(last, seq=last.seq + 1, event=RunResumed(overrides=overrides))
        found = carried(fold_of(records), [again])
        assert found == (None if overrides else fold_of([*records, again]))


def test_it_comes_back_from_json_as_it_was() -> None:
    known = fold_of(recorded(2)[:-3])
    assert decode(Folded, encode(known), "test") == known
