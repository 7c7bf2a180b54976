"""Child acceptance: does the child push the front, beyond the noise? (SPEC §4.4).

The point estimate is SPEC's: ΔHV = HV(F ∪ {h}) − HV(F) > ε in the island's fixed frame. With
``alpha=1`` and ``epsilon=0`` nothing else is asked: the plain rule.

The evidence (**ours**). ΔHV is positive exactly where the child lies strictly inside the reference
box and no member is at least as good on all three axes. A plain bootstrap of that event lets noise
in by three doors: a child identical to its parent needs luck on *one* of three axes only, so its
support passes 95 % in about 40 % of cases; and latency is not even noise of tasks, since a whole
evaluation runs slower on a busy machine. So each door has its own lock, and the doors share α:

* **Accuracy** is compared member by member in 200 paired bootstraps (the same resampled tasks for
  the child and all members), smoothed by the noise of one attempt won and one lost, so that a
  handful of discordant tasks of a small set can't look certain. It gets 7/10 of α; a further 1/10
  pays for the optimism of percentile bootstraps.
* **Tokens** and **latency** count as lower than a member's only where this is *established*: at
  least 10 % (tokens) or 25 % (latency; two evaluations under ±10 % load differ by that much) lower
  in all but α/10 of the same bootstraps. A cost that isn't established as lower is taken as equal.

Support is the share of bootstraps in which every member is beaten, on accuracy in that bootstrap
or on an established cost. The reference box is asked for on the full set only: a₀ was measured on
the same tasks, so holding resampled accuracies against it would test how hard the drawn tasks are,
not the child (children at equal accuracy and half the tokens passed in 38 % of cases with it, and
nearly all without). By the union bound a child identical to its parent passes with probability
about α at most. The front can only lower this: it
must be beaten member by member, the parent included, and members that were lucky stand higher.
A child admitted for its cost may be less accurate than the member it undercuts: that is what a
front is for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milo.core.fitness import Evaluation, fitness_on
from milo.core.hypervolume import Frame, hypervolume_gain
from milo.core.plan import AdmissionPlan
from milo.core.ports import Decision

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ACCURACY_SHARE = 0.7
COST_SHARE = 0.1
TOKEN_MARGIN = 0.10
LATENCY_MARGIN = 0.25


class Evidence(NamedTuple):
    """What the bootstraps say: the overall support and that of each established cost gain."""

    support: float
    cheaper: int
    faster: int


class _Table(NamedTuple):
    """Evaluations as arrays, harnesses × tasks, the child first: attempts, rewards, cost sums."""

    attempts: Array
    reward: Array
    tokens: Array
    latency: Array


def judge(
    child: Evaluation,
    front: Sequence[Evaluation],
    tasks: Sequence[str],
    frame: Frame,
    plan: AdmissionPlan,
    rng: np.random.Generator,
) -> Decision:
    """Admit the child or not; `front` may be the front or the whole admitted set.

    All evaluations must be complete on `tasks` (else `KeyError`). Deterministic given `rng`.
    """
    fitness = [fitness_on(evaluation, tasks) for evaluation in (child, *front)]
    points = frame.points(fitness)
    gain = hypervolume_gain(points[1:], points[0], frame.reference)
    bar = max(plan.epsilon, 0.0)
    if gain <= bar:
        return Decision(admitted=False, reason=_no_gain(points, frame, gain, bar), gain=gain)
    if plan.alpha >= 1:
        return Decision(
            admitted=True, reason=f"hypervolume grows by {gain:.4g}", gain=gain, support=1.0
        )
    evidence = _bootstrap(_table((child, *front), tasks), plan, rng)
    needed = 1 - ACCURACY_SHARE * plan.alpha
    return Decision(
        admitted=evidence.support >= needed,
        reason=_in_words(gain, evidence, needed, len(front), plan),
        gain=gain,
        support=evidence.support,
    )


def _no_gain(points: Array, frame: Frame, gain: float, bar: float) -> str:
    accuracy = 1 - points[0, 0]
    floor = 1 - frame.reference[0]
    if accuracy <= floor:
        return (
            f"no hypervolume: accuracy {accuracy:.3f} is not above the reference {floor:.3f} "
            "(0.8 of the seed's)"
        )
    if gain <= 0:
        return "no hypervolume: a member is at least as accurate, cheap and fast"
    return f"hypervolume grows by {gain:.4g}, not above epsilon {bar:g}"


def _in_words(gain: float, e: Evidence, needed: float, n: int, plan: AdmissionPlan) -> str:
    parts = [f"hypervolume grows by {gain:.4g}"]
    parts.append(
        f"the gain holds in {e.support:.1%} of {plan.bootstraps} bootstraps "
        f"({'at least' if e.support >= needed else 'needs'} {needed:.1%})"
    )
    parts.append(f"tokens are established as lower than {e.cheaper} of {n} members'")
    parts.append(f"latency than {e.faster}")
    return "; ".join(parts)


def _table(evaluations: Sequence[Evaluation], tasks: Sequence[str]) -> _Table:
    cells = np.array(
        [
            [(s.n, s.reward, s.tokens, s.latency_s) for s in map(evaluation.__getitem__, tasks)]
            for evaluation in evaluations
        ],
        dtype=float,
    )
    n = cells[:, :, 0]
    return _Table(n, cells[:, :, 1], cells[:, :, 2] * n, cells[:, :, 3] * n)


def _bootstrap(table: _Table, plan: AdmissionPlan, rng: np.random.Generator) -> Evidence:
    n_tasks = table.reward.shape[1]
    draws = rng.integers(n_tasks, size=(plan.bootstraps, n_tasks))
    weights = _counts(draws, n_tasks)
    attempts = weights @ table.attempts.T
    tokens = weights @ table.tokens.T / attempts
    latency = weights @ table.latency.T / attempts
    accuracy = weights @ table.reward.T / n_tasks
    needed = 1 - COST_SHARE * plan.alpha
    cheaper = _established(tokens, TOKEN_MARGIN, needed)
    faster = _established(latency, LATENCY_MARGIN, needed)
    noise = _smoothing(table, rng, plan.bootstraps)
    better = accuracy[:, :1] - accuracy[:, 1:] + noise > 0
    beaten = (better | cheaper | faster).all(axis=1)
    return Evidence(float(beaten.mean()), int(cheaper.sum()), int(faster.sum()))


def _counts(draws: NDArray[np.int64], n_tasks: int) -> Array:
    """How often each task was drawn, shape (bootstraps, tasks)."""
    rows = np.arange(len(draws))[:, None] * n_tasks
    counts = np.bincount((draws + rows).ravel(), minlength=len(draws) * n_tasks)
    return counts.reshape(len(draws), n_tasks).astype(float)


def _established(costs: Array, margin: float, needed: float) -> Mask:
    """Per member: whether the child's cost is lower by the margin in enough bootstraps."""
    lower = costs[:, :1] < (1 - margin) * costs[:, 1:]
    return np.asarray(lower.mean(axis=0) >= needed)


def _smoothing(table: _Table, rng: np.random.Generator, bootstraps: int) -> Array:
    """Noise of one attempt won and one lost on the mean accuracy, shape (bootstraps, 1)."""
    n_tasks = table.reward.shape[1]
    k = float(table.attempts[0].mean())
    scale = math.sqrt(2.0) / (k * n_tasks)
    return np.asarray(scale * rng.standard_normal((bootstraps, 1)))
