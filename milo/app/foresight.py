"""What a run will cost: at most, before it starts; by the seeds' figures, once they are known.

Where money is at stake and somebody sits at a terminal, the first is asked about.
"""

from __future__ import annotations

from collections.abc import Callable

from milo.app.checks import NOT_HOSTED
from milo.app.pricing import target_price, unpriced
from milo.core.attempt import Usage
from milo.core.budget import Budget, Spend
from milo.core.errors import ConfigError
from milo.core.plan import RunPlan
from milo.core.task import Suite
from milo.gateway.price_book import PriceBook
from milo.gateway.prices import dollars
from milo.runtime.finale import harnesses_tested
from milo.runtime.parts import Load
from milo.search.estimate import RunSize, estimate
from milo.search.preserving import probe_attempts

HOUR_S = 3600.0
NO = frozenset({"n", "no"})


def size_of(plan: RunPlan, suite: Suite, seeds: int) -> RunSize:
    """The sizes that fix what the run costs."""
    return RunSize(
        seeds=seeds,
        islands=min(plan.strategy.islands, seeds),
        search=len(suite.splits.search),
        validation=len(suite.splits.validation),
        test=len(suite.splits.test),
        k=suite.k,
        tested=harnesses_tested(plan, seeds),
        probe=probe_attempts(plan.strategy, len(suite.splits.search), suite.k),
    )


def most_of_an_attempt(plan: RunPlan, prices: PriceBook) -> Spend:
    """What one attempt may cost at most: its cap on tokens, as if all of them were written."""
    cap = plan.model.max_tokens
    price = target_price(plan, prices)
    return Spend(tokens=cap, dollars=dollars(Usage(output=cap), price) or 0.0)


def at_stake(plan: RunPlan, prices: PriceBook) -> str:
    """What money the run may cost, in words; "" where its models are free or nothing is asked.

    A server of the user's own without a price is the user's own affair.
    """
    if plan.replay:
        return ""
    own = plan.model.base_url or plan.model.server.kind
    free = {*NOT_HOSTED, *([plan.model.name] if own else [])}
    unknown = [name for name in unpriced(plan, prices) if name not in free]
    most = most_of_an_attempt(plan, prices)
    words = [f"what {name} costs is not known" for name in unknown]
    if most.dollars:
        words.append(
            f"an attempt costs at most ${most.dollars:.2g} ({most.tokens} tokens), the seeds' "
            "figures are told once they are scored"
        )
    cap = plan.budget.dollars
    limit = f"the budget ends it at ${cap:g}" if cap is not None else "no limit in dollars is set"
    return "; ".join([*words, limit]) if words else ""


def agreed(words: str, terminal: Callable[[str], str] | None) -> bool:
    """Whether the run may start; without a terminal nobody is asked."""
    if not words or terminal is None:
        return True
    try:
        answer = terminal(f"This run costs money: {words}.\nGo on? [Y/n] ")
    except EOFError:
        return False
    return answer.strip().lower() not in NO


class Foresight:
    """Says once what a round costs, by what the seeds have cost. One owner."""

    def __init__(self, size: RunSize, budget: Budget) -> None:
        self._size = size
        self._budget = budget
        self._told = False

    def look(self, load: Load, target: Spend) -> str:
        """The words, once the seeds are scored; "" before and after."""
        if self._told or target.attempts < self._size.for_seeds or not load.mean_attempt_s:
            return ""
        self._told = True
        each = Spend(
            tokens=round(target.tokens / target.attempts),
            dollars=target.dollars / target.attempts,
        )
        per_hour = load.slots * HOUR_S / load.mean_attempt_s
        money = f", ${each.dollars * self._size.per_round:.2g}" if each.dollars else ""
        cost = (
            f"by the seeds' figures a round costs up to {self._size.per_round} attempts, "
            f"{each.tokens * self._size.per_round} tokens{money}, "
            f"{self._size.per_round / per_hour:.2g} hours"
        )
        return f"{cost}: {self._bought(each, per_hour)}"

    def _bought(self, each: Spend, per_hour: float) -> str:
        try:
            rounds = estimate(
                self._size,
                self._budget,
                tokens_per_attempt=each.tokens or None,
                dollars_per_attempt=each.dollars or None,
                attempts_per_hour=per_hour,
            ).rounds
        except ConfigError as short:
            return f"the budget will not pay for a child ({short})"
        if rounds is None:
            return "no limit says how many rounds there will be"
        return f"the budget should buy about {rounds} round{'' if rounds == 1 else 's'}"
