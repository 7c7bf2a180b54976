"""The plan that a run follows is a fold of its journal too."""

from __future__ import annotations

from milo.core.events import RunResumed, RunStarted
from milo.core.population import Population


def test_what_resumes_were_allowed_to_change_holds_from_then_on() -> None:
    """What breaks without it: the second resume silently goes back to the first budget."""
    plan = {"seed": 1, "budget": {"hours": 1.0, "rounds": None}, "cluster": {"slots": 8}}
    population = Population()
    population.apply(RunStarted(name="r", plan=plan, search=(), validation=(), test=(), model="m"))
    population.apply(RunResumed(overrides=("budget.hours=2.5", "cluster.slots=2")))
    population.apply(RunResumed())
    population.apply(RunResumed(overrides=("budget.hours=null", 'cluster.address="head:6379"')))
    assert population.plan == {
        "seed": 1,
        "budget": {"hours": None, "rounds": None},
        "cluster": {"slots": 2, "address": "head:6379"},
    }
    assert plan["budget"] == {"hours": 1.0, "rounds": None}
