"""`python -m milo.suites.deskwork check | write FOLDER`: prove the whole suite, or write it out."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from milo.suites.check import check_tasks
from milo.suites.deskwork import FAMILIES, HELD_OUT, generate, write_harbor
from milo.suites.deskwork.direct import run_task

USAGE = """usage: python -m milo.suites.deskwork check | write FOLDER
`check` includes the held-out family `tables`, `write` leaves it out. To score harnesses on it:
milo run strategy=best_of_seeds seeds=DIR,DIR 'suite.families=[tables]' suite.search=1 \\
    suite.validation=1 suite.test=98"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; the exit code is 1 where a task is broken and 2 on wrong use."""
    match list(arguments):
        case ["check"]:
            return check()
        case ["write", folder]:
            write_harbor(Path(folder))
            return 0
        case _:
            print(USAGE, file=sys.stderr)
            return 2


def check() -> int:
    """Run every reference solution and every no-op, and print what is broken."""
    tasks = generate(families=(*FAMILIES, *HELD_OUT))
    report = asyncio.run(check_tasks(tasks.values(), run_task, parallel=2))
    for bad in report.quarantined:
        print(f"{bad.task}: {bad.reason}")
    print(f"{report.checked} tasks checked, {len(report.quarantined)} broken")
    return 1 if report.quarantined else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
