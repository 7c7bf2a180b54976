"""Does the search adapt to a tight output cap? 4,096 output tokens a call against 32,768.

The paper's figures on Terminal-Bench 2.1 with Opus 4.8 at 4K: best seed 34.4, MILO 81.1 RR@5. Each
cap has a table of its own: the seeds are capped too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from study import Study, run_sweep

from milo.app.cli import Launcher

STUDY = Study(
    name="output-cap",
    question="Does the search adapt to a tight output cap?",
    sweep=("strategy=milo", "model.max_output_tokens=4096,32768"),
    size=("suite=deskwork", "budget.attempts=1500"),
    smoke=("model.max_output_tokens=64,512",),
    together=False,
)


def main(argv: Sequence[str] | None = None, launcher: Launcher | None = None) -> int:
    return run_sweep(STUDY, argv, launcher)


if __name__ == "__main__":
    sys.exit(main())
