"""Is the search better than what you use today? MILO, its control, and the peers, equal budgets.

The peers must be installed (`milo peers install gepa openevolve shinka`) and think with a model, as
everybody does here: `python experiments/peers.py mutators.model=NAME`. Without them:
`strategy=milo,best_of_n,meta_harness`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from study import Study, run_sweep

from milo.app.cli import Launcher

STUDY = Study(
    name="peers",
    question="Is the search better than what you use today?",
    sweep=(
        "strategy=milo,best_of_n,meta_harness,gepa,gepa_anything,openevolve,shinka",
        "seed=1,2,3",
    ),
    size=("suite=deskwork", "budget.attempts=1500"),
    smoke=("seed=1",),
)


def main(argv: Sequence[str] | None = None, launcher: Launcher | None = None) -> int:
    return run_sweep(STUDY, argv, launcher)


if __name__ == "__main__":
    sys.exit(main())
