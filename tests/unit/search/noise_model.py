"""Simulated evaluations with the noise of real ones, for the admission bars.

Rewards are Bernoulli per attempt with the task's own rate; tokens and seconds are log-normal per
attempt around the task's own cost (spread 0.5 and 0.3); and a whole evaluation's latency is up or
down by about 10 %, since the machine is as busy as it is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from milo.core.fitness import TaskScore, fitness_on
from milo.core.hypervolume import Frame
from milo.core.plan import AdmissionPlan
from milo.search.admission import judge


def simulate(rng, rates, k, tokens, seconds) -> dict[str, TaskScore]:
    n = len(rates)
    load = np.exp(rng.normal(0.0, 0.1))
    wins = (rng.random((n, k)) < rates[:, None]).sum(axis=1)
    used = tokens * np.exp(rng.normal(0, 0.5, (n, k))).mean(axis=1)
    took = seconds * np.exp(rng.normal(0, 0.3, (n, k))).mean(axis=1) * load
    return {
        f"t{i}": TaskScore(n=k, reward=w / k, resolved=w, tokens=t, latency_s=s)
        for i, (w, t, s) in enumerate(zip(wins.tolist(), used.tolist(), took.tolist(), strict=True))
    }


def admission_rate(
    children: int,
    *,
    n_tasks: int = 40,
    k: int = 3,
    alpha: float = 0.05,
    lift: float = 0.0,
    cheaper: float = 0.0,
    equal_costs: bool = False,
    front: int = 1,
    seed: int = 0,
) -> float:
    """Share of children admitted whose true rates are `lift` above their parent's.

    `front` members are identical in behaviour; `cheaper` is the child's true saving of tokens.
    """
    admitted = 0
    for number in range(children):
        rng = np.random.default_rng([seed, number])
        rates = np.minimum(rng.beta(1.0, 1.5, n_tasks), 1.0 - lift)
        tokens = 1000 * np.exp(rng.normal(0, 0.6, n_tasks))
        seconds = 3 * np.exp(rng.normal(0, 0.5, n_tasks))
        members = [simulate(rng, rates, k, tokens, seconds) for _ in range(front)]
        child = simulate(rng, rates + lift, k, tokens * (1 - cheaper), seconds)
        if equal_costs:
            child = {
                task: replace(
                    score,
                    tokens=members[0][task].tokens,
                    latency_s=members[0][task].latency_s,
                )
                for task, score in child.items()
            }
        tasks = tuple(child)
        fitness = [fitness_on(member, tasks) for member in members]
        frame = Frame.fixed_by(fitness[0], fitness, k=k, n_tasks=n_tasks)
        plan = AdmissionPlan(alpha=alpha)
        admitted += judge(child, members, tasks, frame, plan, rng).admitted
    return admitted / children
