"""What tokens cost, and the price book of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from milo.core.attempt import Usage
from milo.core.errors import UserError
from milo.gateway.price_book import PriceBook, price_in, read_book, snapshot
from milo.gateway.prices import FREE, Price, dollars


def test_unknown_price_is_not_zero_price() -> None:
    usage = Usage(uncached_input=1_000_000, cached_input=1_000_000, output=1_000_000)
    assert dollars(usage, None) is None
    assert dollars(usage, FREE) == 0.0
    assert dollars(usage, Price(uncached_input=2, cached_input=0.5, output=8)) == 10.5


@pytest.mark.parametrize("name", ["m", "openai/m"])
def test_litellm_s_map_is_read_with_and_without_the_provider_s_name(name: str) -> None:
    entry = {
        "litellm_provider": "openai",
        "input_cost_per_token": 2e-6,
        "output_cost_per_token": 8e-6,
    }
    price = price_in({"m": entry}, name)
    assert price is not None
    assert (price.uncached_input, price.cached_input, price.output) == pytest.approx((2, 2, 8))
    assert price_in({"m": entry}, "openai/other") is None
    assert price_in({"m": {"input_cost_per_token": 1e-6}}, "m") is None


@pytest.mark.parametrize(
    ("provider", "known"),
    [("bedrock", True), ("bedrock_converse", True), ("groq", False), ("bed", False)],
)
def test_a_model_of_the_same_name_elsewhere_says_nothing_of_the_price(
    provider: str, known: bool
) -> None:
    """What one provider charges is no price of another's: unknown, so that it is asked for."""
    entry = {
        "litellm_provider": "bedrock_converse",
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 1e-6,
    }
    assert (price_in({"m": entry}, f"{provider}/m") is not None) is known


def test_a_cache_read_without_its_own_price_costs_as_much_as_input() -> None:
    price = price_in({"m": {"input_cost_per_token": 3e-6, "output_cost_per_token": 0}}, "m")
    assert price is not None
    assert (price.cached_input, price.cache_write) == pytest.approx((3, 3))


def test_a_long_call_is_charged_at_the_long_price() -> None:
    entry = {
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 2e-6,
        "input_cost_per_token_above_200k_tokens": 4e-6,
        "output_cost_per_token_above_200k_tokens": 6e-6,
    }
    price = price_in({"m": entry}, "m")
    short = Usage(uncached_input=100_000, cached_input=100_000, output=1_000_000)
    longer = Usage(uncached_input=100_000, cached_input=100_001, output=1_000_000)
    assert dollars(short, price) == pytest.approx(0.2 + 2)
    assert dollars(longer, price) == pytest.approx(0.800004 + 6)


def test_the_installed_map_prices_known_models_without_importing_litellm() -> None:
    """Source of the figures: the map itself; that they are there and positive is what counts."""
    book = snapshot(["anthropic/claude-haiku-4-5", "openai/gpt-4o-mini", "openai/of-my-own"])
    known = book.price("anthropic/claude-haiku-4-5")
    assert known is not None
    assert 0 < known.cached_input < known.uncached_input < known.cache_write < known.output
    assert book.price("openai/gpt-4o-mini") is not None
    assert book.price("openai/of-my-own") is None
    assert book.source.startswith("litellm ")


def test_a_book_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    """A resume charges by the book of the run's start."""
    long = Price(uncached_input=2, output=4)
    price = Price(uncached_input=1, cached_input=0.1, output=2, long_from=5, long=long)
    book = PriceBook(prices={"m": price, "free": FREE}, source="here")
    path = tmp_path / "prices.json"
    path.write_text(book.text())
    assert read_book(path) == book


def test_the_user_s_prices_go_before_the_installed_ones(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"openai/gpt-4o-mini": {"uncached_input": 1, "output": 2}}))
    own = read_book(path)
    book = snapshot(["openai/gpt-4o-mini"], own.prices)
    assert book.price("openai/gpt-4o-mini") == Price(
        uncached_input=1, cached_input=1, cache_write=1, output=2
    )
    assert book.source == "own prices"


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"uncached_input": 1},
        {"uncached_input": -1, "output": 1},
        {"uncached_input": "1", "output": 1},
        {"uncached_input": True, "output": 1},
        {"uncached_input": 1, "output": 1, "input": 1},
        3,
    ],
)
def test_a_price_file_that_is_none_is_refused(tmp_path: Path, entry: Any) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"m": entry}))
    with pytest.raises(UserError, match="dollars per million tokens"):
        read_book(path)


def test_a_price_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a JSON file"):
        read_book(tmp_path / "none.json")
