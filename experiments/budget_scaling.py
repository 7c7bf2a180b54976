"""Does more budget buy a better harness? One strategy at four budgets, three seeds each."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from study import Study, run_sweep

from milo.app.cli import Launcher

STUDY = Study(
    name="budget-scaling",
    question="Does more budget buy a better harness?",
    sweep=("strategy=milo", "budget.attempts=600,1200,2400,4800", "seed=1,2,3"),
    size=("suite=deskwork",),
    smoke=("budget.attempts=40,60", "seed=1"),
    each=True,
)


def main(argv: Sequence[str] | None = None, launcher: Launcher | None = None) -> int:
    return run_sweep(STUDY, argv, launcher)


if __name__ == "__main__":
    sys.exit(main())
