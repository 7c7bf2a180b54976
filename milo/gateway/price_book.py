"""The price book of a run: what each of its models costs, written down when the run starts.

A run and its resumes charge by the same book, whatever is installed meanwhile. Prices come from a
file of the user's, else from the map that litellm was installed with (read as data: importing
litellm takes seconds, and would fetch a newer map). A model in neither has no price.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from milo.core.errors import UserError
from milo.gateway.prices import Price

JSON = Mapping[str, object]
MAP = "model_prices_and_context_window_backup.json"
KINDS = ("uncached_input", "cached_input", "cache_write", "output")
LITELLM_KINDS = {
    "uncached_input": "input_cost_per_token",
    "cached_input": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "output": "output_cost_per_token",
}
LONG = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceBook:
    """Prices by the name under which the run names a model; a name that is not there has none.

    `source` says where they are from.
    """

    prices: Mapping[str, Price] = field(default_factory=dict)
    source: str = ""

    def price(self, name: str) -> Price | None:
        """The model's price; None where it is unknown."""
        return self.prices.get(name)

    def text(self) -> str:
        """As JSON, in dollars per million tokens."""
        models = {name: _encoded(price) for name, price in sorted(self.prices.items())}
        told = {"unit": "dollars per million tokens", "source": self.source, "models": models}
        return json.dumps(told, indent=2) + "\n"


def snapshot(names: Iterable[str], own: Mapping[str, Price] | None = None) -> PriceBook:
    """The book of a run over these models: the user's prices first, then litellm's.

    Reads litellm's map (a few megabytes) only for a name that the user's own lacks.
    """
    own = own or {}
    wanted = sorted(set(names))
    missing = [name for name in wanted if name not in own]
    installed = installed_map() if missing else {}
    found = {name: own.get(name) or price_in(installed, name) for name in wanted}
    prices = {name: price for name, price in found.items() if price is not None}
    version = importlib.metadata.version("litellm") if missing else ""
    source = ", ".join(
        words for words in ("own prices" if own else "", version and f"litellm {version}") if words
    )
    return PriceBook(prices=prices, source=source)


def read_book(path: Path) -> PriceBook:
    """A book from a file: a run's own, or one that the user wrote; raises `UserError`."""
    try:
        raw = json.loads(path.read_text())
        models = raw["models"] if isinstance(raw.get("models"), Mapping) else raw
        prices = {str(name): _decoded(entry) for name, entry in models.items()}
    except OSError as error:
        raise UserError(f"price book {path}", "a JSON file", str(error)) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        kinds = ", ".join(KINDS)
        raise UserError(
            f"price book {path}",
            f"{{model: {{{kinds}}}}} in dollars per million tokens",
            str(error),
        ) from error
    return PriceBook(prices=prices, source=str(raw.get("source") or path.name))


def installed_map() -> Mapping[str, JSON]:
    """The price map that litellm was installed with, in dollars per token; empty without it."""
    spec = importlib.util.find_spec("litellm")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(root) / MAP
        if path.is_file():
            found: Mapping[str, JSON] = json.loads(path.read_text())
            return found
    return {}


def price_in(prices: Mapping[str, JSON], name: str) -> Price | None:
    """The model's entry in litellm's map, per million tokens; None where it has none.

    A cache read or write without a price of its own is charged as input. A name with a provider
    before it is also looked for without, but only among that provider's models: others charge
    otherwise for a model of the same name.
    """
    provider, _, bare = name.partition("/")
    entry = prices.get(name) or _of_provider(prices.get(bare) or {}, provider)
    price = _of_entry(entry, "")
    if price is None:
        return None
    above = sorted(int(found[1]) for key in entry if (found := LONG.fullmatch(key)))
    if not above:
        return price
    longer = _of_entry(entry, f"_above_{above[0]}k_tokens")
    return _with_long(price, above[0] * 1000, longer)


def _of_provider(entry: JSON, provider: str) -> JSON:
    """The entry, where it is this provider's: some have several kinds (``vertex_ai-…``)."""
    kind = str(entry.get("litellm_provider", ""))
    return entry if kind == provider or kind.startswith((f"{provider}-", f"{provider}_")) else {}


def _of_entry(entry: JSON, suffix: str) -> Price | None:
    found = {kind: entry.get(f"{key}{suffix}") for kind, key in LITELLM_KINDS.items()}
    raw = {kind: float(str(cost)) * 1e6 for kind, cost in found.items() if cost is not None}
    if "uncached_input" not in raw or "output" not in raw:
        return None
    read = raw["uncached_input"]
    return Price(
        uncached_input=read,
        cached_input=raw.get("cached_input", read),
        cache_write=raw.get("cache_write", read),
        output=raw["output"],
    )


def _with_long(price: Price, start: int, longer: Price | None) -> Price:
    return price if longer is None else replace(price, long_from=start, long=longer)


def _encoded(price: Price) -> dict[str, object]:
    entry: dict[str, object] = {kind: getattr(price, kind) for kind in KINDS}
    if price.long is not None:
        entry |= {"long_from": price.long_from, "long": _encoded(price.long)}
    return entry


def _decoded(entry: Mapping[str, object]) -> Price:
    """Raises `ValueError` for what is no price; cache kinds that are not named cost as input."""
    known = {*KINDS, "long_from", "long"}
    if unknown := entry.keys() - known:
        raise ValueError(f"unknown {', '.join(sorted(unknown))}")
    read = _amount(entry["uncached_input"])
    base = Price(
        uncached_input=read,
        cached_input=_amount(entry.get("cached_input", read)),
        cache_write=_amount(entry.get("cache_write", read)),
        output=_amount(entry["output"]),
    )
    longer = entry.get("long")
    if not isinstance(longer, Mapping):
        return base
    return _with_long(base, int(str(entry["long_from"])), _decoded(longer))


def _amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no amount")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{value!r} is no amount")
    return float(value)
