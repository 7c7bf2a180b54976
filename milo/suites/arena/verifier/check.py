"""Judge the construction in a workspace: reward = clip(gain / target improvement, 0, 1).

Run as ``python3 -I check.py TESTS LOGS WORKSPACE``. The problem, the frozen construction's value
and the target lie in TESTS/expected.json. The construction itself goes to standard output, packed,
for the archive of records.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

LARGEST_FILE = 4 * 1024 * 1024
NAME = "construction.json"


def judge(expected: dict[str, object], text: str) -> tuple[float, str, str]:
    """The reward, words for the report, and the packed construction ("" where none counts)."""
    from milo.suites.arena.problems.catalogue import parse, problems
    from milo.suites.arena.problems.packing import packed
    from milo.suites.arena.problems.problem import Rejected, verify

    problem = problems()[str(expected["problem"])]
    start, target = float(str(expected["start"])), float(str(expected["target"]))
    try:
        found = verify(problem, parse(text))
        if len(found.construction) > int(str(expected["most"])):
            raise Rejected(f"expected at most {expected['most']} values")
    except Rejected as error:
        return 0.0, f"rejected: {error}", ""
    gain, wanted = problem.gain(found.value, start), problem.gain(target, start)
    reward = min(1.0, max(0.0, gain / wanted))
    # The first line is for programs: milo.core.objective reads it.
    words = (
        f"objective {problem.name} {found.value!r} {start!r} {target!r}\n"
        f"value {found.value!r}, from {start!r}: a gain of {gain:.3e} of {wanted:.3e}"
    )
    return reward, words, packed(problem.name, found.value, found.given)


def text_in(workspace: Path) -> str:
    """The construction's text; "" where there is none that can be read."""
    path = workspace / NAME
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_FILE:
        return ""
    return path.read_text(encoding="utf-8", errors="replace")


def main(tests: Path, logs: Path, workspace: Path) -> None:
    """Write reward.json last, and report.txt."""
    sys.path[:0] = [str(tests), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    expected = json.loads((tests / "expected.json").read_text(encoding="utf-8"))
    reward, words, line = judge(expected, text_in(workspace))
    (logs / "report.txt").write_text(words + "\n", encoding="utf-8")
    print(line)
    (logs / "reward.json").write_text(json.dumps({"reward": reward}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
