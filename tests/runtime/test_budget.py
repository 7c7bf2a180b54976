"""A budget in dollars under many workers, and through kills, against the model's own count."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from budgets import Hammering, check, killed_at, ledger, model

pytestmark = pytest.mark.timeout(120)


def hammering(tmp_path: Path, dollars: float) -> Hammering:
    made = Hammering(run=tmp_path / "run", workers=16, dollars=dollars, per_token=1e-5)
    made.prepare()
    return made


async def test_sixteen_workers_end_within_one_call_each_of_the_budget(tmp_path: Path) -> None:
    ours = hammering(tmp_path, 0.2)
    async with model(0.002) as server:
        process = await ours.start(server)
        out, _ = await process.communicate()
        assert process.returncode == 0
        book = ledger(ours.run)
        check(ours, server.tally, book)
        assert int(out) == server.tally.calls
        assert not book.unsettled
        assert book.total.dollars > ours.dollars - 2 * ours.one_call, "all but a call is spent"


@pytest.mark.parametrize("part", [0.1, 0.6])
async def test_a_killed_and_resumed_budget_equals_the_model_s_own_count(
    tmp_path: Path, part: float
) -> None:
    ours = hammering(tmp_path, 0.2)
    calls = part * ours.dollars / ours.one_call
    async with model(0.002) as server:
        process = await ours.start(server)
        await killed_at(process, lambda: server.tally.calls >= calls)
        await asyncio.sleep(0.05)  # what was on its way to the model is counted there
        process = await ours.start(server)
        await process.communicate()
        assert process.returncode == 0
        check(ours, server.tally, ledger(ours.run))
        assert 0 < len(ledger(ours.run).unsettled) <= ours.workers
