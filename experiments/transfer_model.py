"""Does a harness evolved for one model help another? Search with one, score with the other.

`python experiments/transfer_model.py model=ONE --to model=OTHER`
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from study import Study, run_transfer

from milo.app.cli import Launcher

STUDY = Study(
    name="transfer-model",
    question="Does a harness evolved for one model help another?",
    sweep=("strategy=milo", "seed=1"),
    size=("suite=deskwork", "budget.attempts=3000"),
)


def main(argv: Sequence[str] | None = None, launcher: Launcher | None = None) -> int:
    return run_transfer(STUDY, argv, launcher)


if __name__ == "__main__":
    sys.exit(main())
