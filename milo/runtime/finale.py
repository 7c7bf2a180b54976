"""The end of a run: the winner is frozen, then scored once on the test split."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from milo.core.budget import Budget, Spend
from milo.core.events import CandidateScored, WinnerFrozen
from milo.core.plan import RunPlan, TestedSeeds
from milo.core.population import Population
from milo.core.task import Suite
from milo.runtime.parts import EvaluationRequest, Peers
from milo.runtime.treasury import TEST_PROMISE
from milo.search.progress import choose_winner


def freeze_winner(population: Population, suite: Suite, plan: RunPlan) -> WinnerFrozen | None:
    """The winner among validated members by the plan's rule; None where nobody is validated."""
    validation = suite.splits.validation
    evaluations = {
        node.candidate: node.evaluation("validation")
        for node in population.lineage
        if node.verdict is not None
        and node.verdict.is_member
        and node.fitness("validation", validation) is not None
    }
    if not evaluations:
        return None
    choice = choose_winner(evaluations, validation, plan.strategy.winner)
    return WinnerFrozen(
        candidate=choice.candidate,
        island=population.lineage[choice.candidate].island,
        rule=choice.words,
        front=choice.front,
    )


def harnesses_tested(plan: RunPlan, seeds: int) -> int:
    """How many harnesses the test split is scored for at most: the winner and some seeds."""
    return 1 + (1 if plan.strategy.tested_seeds is TestedSeeds.BEST else seeds)


def candidates_to_test(
    population: Population, suite: Suite, plan: RunPlan, seeds: Sequence[str]
) -> tuple[str, ...]:
    """The winner first, then the seeds that it is compared with.

    The winner is the frozen one, or before that the one that would be frozen now.
    """
    winner = population.winner or freeze_winner(population, suite, plan)
    frozen = () if winner is None else (winner.candidate,)
    if plan.strategy.tested_seeds is TestedSeeds.BEST:
        validation = suite.splits.validation

        def accuracy(seed: str) -> float:
            fitness = population.lineage[seed].fitness("validation", validation)
            return -1.0 if fitness is None else fitness.accuracy

        seeds = [max(seeds, key=accuracy)]
    return tuple(dict.fromkeys((*frozen, *seeds)))


def attempt_s(population: Population, candidate: str) -> float | None:
    """Mean seconds for which a candidate's attempts so far took a slot; None where it has none."""
    node = population.lineage[candidate]
    splits = (node.evaluation("search"), node.evaluation("validation"))
    scores = [score for split in splits for score in split.values()]
    attempts = sum(score.n for score in scores)
    taken = sum(score.n * (score.slot_s or score.latency_s) for score in scores)
    return taken / attempts if attempts else None


def expected_test(target: Spend, attempts: int) -> Spend:
    """What so many attempts of the final test cost, at the mean of the target's so far."""
    made = max(1, target.attempts)
    return Spend(
        attempts=attempts,
        tokens=round(target.tokens / made * attempts),
        dollars=target.dollars / made * attempts,
    )


def spent_limit(budget: Budget, spent: Mapping[str, Spend], test_attempts: int) -> str:
    """The limit ("tokens" or "dollars") of which only the final test's share is left, or ""."""
    total, test = sum(spent.values(), Spend()), expected_test(spent["target"], test_attempts)
    for limit in ("tokens", "dollars"):
        cap = getattr(budget, limit)
        if cap is not None and getattr(total, limit) + getattr(test, limit) >= cap:
            return limit
    return ""


async def score_test(
    population: Population, suite: Suite, peers: Peers, candidates: Sequence[str]
) -> Sequence[CandidateScored]:
    """Score the candidates that have no test scores yet; all at once over the shared slots."""
    tasks = suite.splits.test
    todo = [
        candidate
        for candidate in dict.fromkeys(candidates)
        if tasks and population.lineage[candidate].fitness("test", tasks) is None
    ]
    return await asyncio.gather(*(_score(population, suite, peers, c) for c in todo))


async def _score(
    population: Population, suite: Suite, peers: Peers, candidate: str
) -> CandidateScored:
    result = await peers.dispatcher.evaluate(
        EvaluationRequest(
            island="run",
            candidate=candidate,
            harness=await peers.recorder.get_harness(candidate),
            split="test",
            tasks=suite.splits.test,
            k=suite.k,
            reservation=TEST_PROMISE,
        )
    )
    return CandidateScored(
        island=population.lineage[candidate].island,
        candidate=candidate,
        split="test",
        scores=result.scores,
        missing=result.missing,
    )
