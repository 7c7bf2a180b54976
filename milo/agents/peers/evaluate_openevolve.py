"""What OpenEvolve's workers load as their evaluator: MILO scores the program."""

from __future__ import annotations

from pathlib import Path

from milo_peer import joined, judged, worst
from openevolve.evaluation_result import EvaluationResult

FEEDBACK_CHARS = 16_000


def evaluate(program_path: str) -> EvaluationResult:
    """Accuracy is the fitness; tokens and seconds are told beside it."""
    answer = judged(joined(), Path(program_path).read_text())
    metrics = {name: float(answer[name]) for name in ("accuracy", "tokens", "seconds")}
    return EvaluationResult(
        metrics={"combined_score": metrics["accuracy"], **metrics},
        artifacts={"attempts": worst(answer, FEEDBACK_CHARS)},
    )
