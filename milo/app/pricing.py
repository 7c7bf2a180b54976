"""The price book of a run: made when it starts, kept in its directory, read again by a resume."""

from __future__ import annotations

from pathlib import Path

from milo.agents.pool import needs_model
from milo.app.checks import NOT_HOSTED
from milo.core.errors import ConfigError
from milo.core.plan import RunPlan
from milo.gateway.price_book import PriceBook, read_book, snapshot
from milo.gateway.prices import FREE, Price

FILE = "prices.json"
AT_START = (
    'model.prices=FILE, a file of {"NAME": {"uncached_input": 0.5, "output": 1.5}} in dollars per '
    "million tokens, zeros for what costs nothing"
)
AT_RESUME = (
    "a run keeps those of its start: --allow-changes budget.dollars=null lifts the limit, a new "
    "run may have others"
)


def price_book(plan: RunPlan) -> PriceBook:
    """What the run's models cost; raises `UserError` where `model.prices` is no price book.

    A server of the user's own costs what `model.prices` says: that it answers under a known name
    says nothing about its price.
    """
    own = dict(read_book(Path(plan.model.prices)).prices) if plan.model.prices else {}
    local = {name: FREE for name in NOT_HOSTED}
    named = _of_agents(plan)
    if not _own_server(plan) or plan.model.name in own:
        named.add(plan.model.name)
    return snapshot(named, {**local, **own})


def _own_server(plan: RunPlan) -> bool:
    return bool(plan.model.base_url or plan.model.server.kind)


def _of_agents(plan: RunPlan) -> set[str]:
    """The models that mutators, the orchestrator and judges think with, but for the frozen one
    on a server of the user's own."""
    agents = plan.agents
    pairs = (entry.partition(":")[::2] for entry in agents.mutators)
    named = {model or agents.model for kind, model in pairs if needs_model(kind)} | {agents.judge}
    named.add(plan.suite.judge)
    if agents.orchestrator == "agent" and plan.strategy.orchestrator:
        named.add(agents.model)
    return named - {"", plan.model.name if plan.model.base_url else ""}


def unpriced(plan: RunPlan, book: PriceBook) -> tuple[str, ...]:
    """The models of a run whose price is unknown, so that its dollars are not complete."""
    unknown = {name for name in _of_agents(plan) if book.price(name) is None}
    if target_price(plan, book) is None:
        unknown.add(plan.model.name)
    return tuple(sorted(unknown))


def require_prices(plan: RunPlan, book: PriceBook, way: str = AT_START) -> None:
    """Refuse a limit in dollars over a model whose price is unknown: it would bind nothing.

    Raises `ConfigError`, which names the model and the way out. A replay pays nobody.
    """
    unknown = unpriced(plan, book)
    if plan.budget.dollars is None or plan.replay or not unknown:
        return
    searched = f" in {plan.model.prices}" if plan.model.prices else ""
    raise ConfigError(
        f"budget.dollars={plan.budget.dollars:g}",
        f"a known price of every model ({way})",
        f"none of {', '.join(unknown)}{searched}",
    )


def target_price(plan: RunPlan, book: PriceBook) -> Price | None:
    """The price of the frozen model; None where it is unknown."""
    if _own_server(plan) and not plan.model.prices:
        return None
    return book.price(plan.model.name)


def keep(run: Path, book: PriceBook) -> None:
    """Write the book into a run directory."""
    (run / FILE).write_text(book.text())


def kept(run: Path, plan: RunPlan) -> PriceBook:
    """The book that a run started with; one made now for a run that has none."""
    path = run / FILE
    return read_book(path) if path.is_file() else price_book(plan)
