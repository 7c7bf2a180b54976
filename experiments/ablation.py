"""What does each mechanism add? A to E (SPEC §5), the same budget, three seeds each.

Strategy A thinks with a model (`mutators.model=NAME`). Without a key: `strategy=best_of_n,b,c,d,e
mutators=operators`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from study import Study, run_sweep

from milo.app.cli import Launcher

STUDY = Study(
    name="ablation",
    question="What does each mechanism add?",
    sweep=("strategy=a,b,c,d,e", "seed=1,2,3"),
    size=("suite=deskwork", "budget.attempts=1500"),
    smoke=("seed=1",),
)


def main(argv: Sequence[str] | None = None, launcher: Launcher | None = None) -> int:
    return run_sweep(STUDY, argv, launcher)


if __name__ == "__main__":
    sys.exit(main())
