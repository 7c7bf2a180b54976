"""The price book of a run: made when it starts, kept in its directory, read again by a resume."""

from __future__ import annotations

from pathlib import Path

from milo.app.checks import NOT_HOSTED, OWN_MUTATOR
from milo.core.plan import RunPlan
from milo.gateway.price_book import PriceBook, read_book, snapshot
from milo.gateway.prices import FREE, Price

FILE = "prices.json"


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
    """The models that mutators, the orchestrator and the judge have of their own."""
    pool = [entry for entry in plan.agents.mutators if not entry.startswith(OWN_MUTATOR)]
    others = {plan.agents.model, plan.agents.judge}
    return ({entry.partition(":")[2] for entry in pool} | others) - {""}


def unpriced(plan: RunPlan, book: PriceBook) -> tuple[str, ...]:
    """The models of a run whose price is unknown, so that its dollars are not complete."""
    unknown = {name for name in _of_agents(plan) if book.price(name) is None}
    if target_price(plan, book) is None:
        unknown.add(plan.model.name)
    return tuple(sorted(unknown))


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
