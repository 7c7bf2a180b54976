"""Drives GEPA on a harness: ``prompts`` evolves its prompt texts, ``anything`` its source files.

Started as ``drive_gepa.py BASE_URL TOKEN MODEL prompts|anything`` in GEPA's own environment. In
both modes a candidate is a mapping of named texts; GEPA picks minibatches, reflects on feedback and
keeps its own Pareto front, and every score comes from MILO.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import gepa
from gepa.core.adapter import EvaluationBatch
from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything
from milo_peer import Peer, started
from prompt_texts import prompts_of, with_prompts

WITHOUT_END = 10**9
"""GEPA's own budget: MILO's limits end the run."""

Candidate = dict[str, str]


class Prompts:
    """GEPA's adapter for the prompts of a harness: MILO scores, and shows what it may of attempts.

    GEPA knows an adapter by its methods; `propose_new_texts` is None where GEPA itself proposes.
    """

    propose_new_texts = None

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def evaluate(
        self, batch: Sequence[str], candidate: Candidate, capture_traces: bool = False
    ) -> EvaluationBatch[Any, Any]:
        """Scores of a candidate on a batch of tasks; a refused candidate scores nothing."""
        told = told_of(self._peer, with_prompts(self._peer.files, candidate), batch)
        shown = [{"Task": task, **info} for task, (_, info) in zip(batch, told, strict=True)]
        return EvaluationBatch(
            outputs=shown,
            scores=[score for score, _ in told],
            trajectories=shown if capture_traces else None,
        )

    def make_reflective_dataset(
        self, candidate: Candidate, batch: EvaluationBatch[Any, Any], components: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """What is reflected on: the same attempts for every component."""
        return {name: list(batch.trajectories or ()) for name in components}


def told_of(
    peer: Peer, files: dict[str, str], tasks: Sequence[str]
) -> list[tuple[float, dict[str, Any]]]:
    """Score and feedback of a candidate on each task."""
    answer = peer.evaluate(files, list(tasks))
    found = []
    for task in tasks:
        score = float(answer["scores"].get(task, answer["accuracy"]))
        said = answer["refused"] or answer["feedback"].get(task, "no attempt was valid")
        found.append((score, {"Score": score, "Feedback": said}))
    return found


def evolve_prompts(peer: Peer) -> None:
    """GEPA on the prompts, until it is ended."""
    seed = prompts_of(peer.files)
    if not seed:
        sys.exit("the seed harness holds no prompt: no text of several words in a constant")
    gepa.optimize(
        seed_candidate=seed,
        trainset=peer.tasks,
        valset=peer.tasks,
        adapter=Prompts(peer),
        reflection_lm=peer.ask,
        max_metric_calls=WITHOUT_END,
        seed=peer.seed % 2**32,
    )


def evolve_anything(peer: Peer) -> None:
    """GEPA's optimize-anything on the source files, until it is ended."""

    def batch(pairs: Sequence[tuple[Candidate, str]]) -> list[tuple[float, dict[str, Any]]]:
        """Pairs of one candidate are asked for together."""
        found: dict[int, tuple[float, dict[str, Any]]] = {}
        for candidate in dict.fromkeys(tuple(sorted(c.items())) for c, _ in pairs):
            places = [i for i, (c, _) in enumerate(pairs) if tuple(sorted(c.items())) == candidate]
            told = told_of(peer, dict(candidate), [pairs[i][1] for i in places])
            found.update(zip(places, told, strict=True))
        return [found[i] for i in range(len(pairs))]

    engine = EngineConfig(max_metric_calls=WITHOUT_END, seed=peer.seed % 2**32)
    optimize_anything(
        seed_candidate=dict(peer.files),
        batch_evaluator=batch,
        dataset=peer.tasks,
        objective=peer.objective,
        background=peer.background,
        config=GEPAConfig(engine=engine, reflection=ReflectionConfig(reflection_lm=peer.ask)),
    )


if __name__ == "__main__":
    {"prompts": evolve_prompts, "anything": evolve_anything}[sys.argv[4]](started())
