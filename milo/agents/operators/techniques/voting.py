"""Self-consistency: several attempts from the same start; the effect most of them share stays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from .runs import last_fault, runs
from .workspace import complaints, restore, seconds_left, snapshot

Solve = Callable[..., Any]
LEAST_SECONDS = 15.0


class Sample(NamedTuple):
    """One attempt: its result, the folder it left, and whether nothing is plainly wrong."""

    result: Any
    after: dict[str, bytes]
    sound: bool


def winner(samples: list[Sample]) -> Sample:
    """The first sample of the most common outcome, counted among the sound ones if any are."""
    pool = [sample for sample in samples if sample.sound] or samples
    return max(pool, key=lambda sample: sum(sample.after == other.after for other in pool))


def decided(samples: list[Sample], wanted: int) -> bool:
    """Whether two sound samples agree and the samples still to come can't outvote them."""
    sound = [sample for sample in samples if sample.sound]
    best = max((sum(a.after == b.after for b in sound) for a in sound), default=0)
    return 2 * best > wanted


def majority(samples: int) -> Callable[[Solve], Solve]:
    """Attempt the task up to `samples` times and keep the outcome that most attempts share."""

    def wrap(solve: Solve) -> Solve:
        @functools.wraps(solve)
        def voted(*args: Any, **options: Any) -> Any:
            before = snapshot()
            taken: list[Sample] = []
            while len(taken) < samples and not decided(taken, samples):
                if taken and seconds_left() < LEAST_SECONDS:
                    break
                restore(before)
                runs.clear()
                try:
                    result = solve(*args, **options)
                except OSError:  # the model refuses further calls: the samples so far decide
                    if not taken:
                        raise
                    break
                sound = not complaints(before) and not (runs and last_fault())
                taken.append(Sample(result, snapshot(), sound))
            chosen = winner(taken)
            restore(chosen.after)
            return chosen.result

        return voted

    return wrap
