"""What a parent's attempts say: when an optimizer stopped getting better, and how far it came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from milo.core.evidence import Evidence
from milo.core.objective import steps_in


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """The attempts together. `reward` is their mean; `idle` the mean share of the time after the
    last improvement (1 where there was none); `failed` the share of attempts that printed none."""

    reward: float
    idle: float
    failed: float
    attempts: int

    @property
    def words(self) -> str:
        """The diagnosis."""
        return (
            f"{self.attempts} attempts reach {self.reward:.3f} of their targets; nothing improved "
            f"in the last {self.idle:.0%} of the time, and in {self.failed:.0%} of the attempts "
            f"nothing at all"
        )


def course_of(evidence: Sequence[Evidence]) -> Course:
    """Read the printed lines of every attempt."""
    if not evidence:
        return Course(reward=0.0, idle=0.5, failed=0.0, attempts=0)
    idle, rewards, failed = [], [], 0
    for one in evidence:
        times = [step.seconds for step in steps_in(one.trace.stdout)]
        total = max(one.outcome.timings.agent_s, times[-1] if times else 0.0, 1e-9)
        idle.append(1 - times[-1] / total if times else 1.0)
        failed += not times
        rewards.append(one.outcome.reward or 0.0)
    n = len(evidence)
    return Course(reward=sum(rewards) / n, idle=sum(idle) / n, failed=failed / n, attempts=n)
