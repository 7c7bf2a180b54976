"""What tokens cost. An unknown price is None and never zero; tokens are counted either way."""

from __future__ import annotations

from dataclasses import dataclass

from milo.core.attempt import Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """Dollars per million tokens, by kind; every token is charged under one kind.

    `long` holds for calls whose whole input is longer than `long_from` tokens.
    """

    uncached_input: float = 0.0
    cached_input: float = 0.0
    cache_write: float = 0.0
    output: float = 0.0
    long_from: int = 0
    long: Price | None = None


FREE = Price()


def dollars(usage: Usage, price: Price | None) -> float | None:
    """What one call's usage costs at a price; None where the price is unknown."""
    if price is None:
        return None
    prompt = usage.uncached_input + usage.cached_input + usage.cache_write
    if price.long is not None and prompt > price.long_from:
        price = price.long
    micro = (
        usage.uncached_input * price.uncached_input
        + usage.cached_input * price.cached_input
        + usage.cache_write * price.cache_write
        + usage.output * price.output
    )
    return micro / 1e6
