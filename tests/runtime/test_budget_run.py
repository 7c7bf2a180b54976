"""A whole run on a budget in dollars, killed and resumed: its ledger against the model's count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from words import milo, serving, started, wait_for_attempts, words_for, write_suite

from milo.core.budget import Spend
from milo.store import RunReader
from milo.testing.scripted_model import ScriptedServer

pytestmark = pytest.mark.timeout(600)
PER_TOKEN, DOLLARS, SLOTS, MOST_A_CALL = 1e-5, 0.6, 4, 1000


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving() as running:
        yield running


def words(server: ScriptedServer, folder: Path) -> list[str]:
    price = {"uncached_input": PER_TOKEN * 1e6, "output": PER_TOKEN * 1e6}
    prices = folder / "prices.json"
    prices.write_text(json.dumps({"openai/scripted": price}))
    return words_for(
        server,
        write_suite(folder / "suite"),
        "run",
        f"budget.dollars={DOLLARS}",
        f"model.prices={prices}",
        "model.max_output_tokens=60",
    )


def test_a_killed_run_in_dollars_ends_within_its_budget_and_accounts_for_every_call(
    server: ScriptedServer, tmp_path: Path
) -> None:
    with started(words(server, tmp_path), tmp_path) as process:
        wait_for_attempts(process, tmp_path / "run", 10)
    done = milo(["resume", "run"], tmp_path, limit_s=400.0)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    with RunReader(tmp_path / "run") as reader:
        book, ended = reader.calls, reader.population().ended
    assert ended is not None and "dollars" in ended.reason
    assert book is not None and not book.open
    promised = sum((entry.amount for entry in book.unsettled), Spend())
    served = server.tally.prompt_tokens + server.tally.output_tokens
    settled = book.total.tokens - promised.tokens
    assert settled <= served <= book.total.tokens
    if not book.unsettled:
        assert served == settled
    assert book.total.dollars <= DOLLARS + SLOTS * MOST_A_CALL * PER_TOKEN
    assert book.total.dollars == pytest.approx(book.total.tokens * PER_TOKEN)
    said = milo(["status", "run"], tmp_path).stdout
    assert ("unsettled" in said) == bool(book.unsettled)
