"""What ShinkaEvolve runs as its evaluation job: MILO scores the program.

Started as ``evaluate_shinka.py --program_path FILE --results_dir DIR``; it leaves ``metrics.json``
and ``correct.json`` there, as Shinka reads them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from milo_peer import joined, judged, worst

FEEDBACK_CHARS = 16_000
MARKS = ("# EVOLVE-BLOCK-START", "# EVOLVE-BLOCK-END")


def without_marks(program: str) -> str:
    """The program without Shinka's own marks."""
    lines = program.splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() not in MARKS)


def main(program_path: str, results_dir: str) -> None:
    """Score one program and leave what Shinka wants to know of it."""
    answer = judged(joined(), without_marks(Path(program_path).read_text()))
    shown = {name: float(answer[name]) for name in ("accuracy", "tokens", "seconds")}
    metrics = {
        "combined_score": shown["accuracy"],
        "public": shown,
        "private": {},
        "text_feedback": worst(answer, FEEDBACK_CHARS),
    }
    correct = {"correct": not answer["refused"], "error": answer["refused"] or None}
    folder = Path(results_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.json").write_text(json.dumps(metrics))
    (folder / "correct.json").write_text(json.dumps(correct))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path", required=True)
    parser.add_argument("--results_dir", required=True)
    args = parser.parse_args()
    main(args.program_path, args.results_dir)
