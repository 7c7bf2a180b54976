"""The lineage: an append-only forest of candidates, folded from events (SPEC §3.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from milo.core.attempt import Usage
from milo.core.errors import RecordError
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    Event,
    Verdict,
)
from milo.core.fitness import Evaluation, Fitness, TaskScore, fitness_on, missing_tasks


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A candidate and all that is known of it; `verdict` is None until it is judged.

    `island` is the island that made it; membership after Speciate is the topology's business.
    `sent_back` is for the run's owner alone.
    """

    candidate: str
    island: str
    round: int
    parents: tuple[str, ...]
    harness: str
    mutator: str
    change: Change
    patch_lines: int = 0
    tries: int = 1
    usage: Usage = field(default_factory=Usage)
    scores: Mapping[str, Mapping[str, TaskScore]] = field(default_factory=dict)
    verdict: Verdict | None = None
    reason: str = ""
    gain: float = 0.0
    support: float = 0.0
    sent_back: tuple[str, ...] = ()

    def evaluation(self, split: str) -> Evaluation:
        """Per-task scores on ``search``, ``validation`` or ``test``; empty where unscored."""
        return self.scores.get(split, {})

    def fitness(self, split: str, tasks: Sequence[str]) -> Fitness | None:
        """Fitness on these tasks, or None while the evaluation is incomplete."""
        evaluation = self.evaluation(split)
        if not tasks or missing_tasks(evaluation, tasks):
            return None
        return fitness_on(evaluation, tasks)


class Lineage:
    """Candidates by id, in the order they were proposed. Nothing is ever removed."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._children: dict[str, list[str]] = {}

    def __getitem__(self, candidate: str) -> Node:
        return self._nodes[candidate]

    def __contains__(self, candidate: object) -> bool:
        return candidate in self._nodes

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __len__(self) -> int:
        return len(self._nodes)

    def apply(self, event: Event) -> None:
        """Fold one event in; events that say nothing of candidates are ignored.

        Raises `RecordError` for an unknown candidate or parent, a second proposal under one id,
        or a second, different verdict (a repeated equal verdict is harmless).
        """
        match event:
            case CandidateProposed():
                self._propose(event)
            case CandidateScored():
                self._score(event)
            case CandidateJudged():
                self._judge(event)
            case _:
                pass

    def seen(self, show: Callable[[Node], Node]) -> Lineage:
        """A copy in which every candidate is as `show` lets it be seen."""
        copy = Lineage()
        copy._nodes = {candidate: show(node) for candidate, node in self._nodes.items()}
        copy._children = {parent: list(ids) for parent, ids in self._children.items()}
        return copy

    def children(self, candidate: str) -> tuple[str, ...]:
        """Ids of the candidates that have this one among their parents."""
        return tuple(self._children.get(candidate, ()))

    def subtree(self, root: str) -> tuple[str, ...]:
        """`root` and all its descendants by first parent, in order of proposal."""
        found = {root}
        for node in self._nodes.values():
            if node.parents and node.parents[0] in found:
                found.add(node.candidate)
        return tuple(candidate for candidate in self._nodes if candidate in found)

    def path_from_seed(self, candidate: str) -> tuple[str, ...]:
        """Ids from the seed to the candidate along first parents."""
        path = [candidate]
        while self._nodes[path[-1]].parents:
            path.append(self._nodes[path[-1]].parents[0])
        return tuple(reversed(path))

    def of_island(self, island: str) -> tuple[Node, ...]:
        """Candidates that this island made, in order."""
        return tuple(node for node in self._nodes.values() if node.island == island)

    def copy(self) -> Lineage:
        """As it stands now; nodes are frozen and shared."""
        twin = Lineage()
        twin._nodes = dict(self._nodes)
        twin._children = {parent: list(ids) for parent, ids in self._children.items()}
        return twin

    def _propose(self, event: CandidateProposed) -> None:
        if event.candidate in self._nodes:
            raise RecordError(f"candidate {event.candidate} was proposed twice")
        unknown = [parent for parent in event.parents if parent not in self._nodes]
        if unknown:
            raise RecordError(f"candidate {event.candidate} has an unknown parent {unknown[0]}")
        self._nodes[event.candidate] = Node(
            candidate=event.candidate,
            island=event.island,
            round=event.round,
            parents=event.parents,
            harness=event.harness,
            mutator=event.mutator,
            change=event.change,
            patch_lines=event.patch_lines,
            tries=event.tries,
            usage=event.usage,
            sent_back=event.sent_back,
        )
        for parent in event.parents:
            self._children.setdefault(parent, []).append(event.candidate)

    def _known(self, candidate: str) -> Node:
        if candidate not in self._nodes:
            raise RecordError(f"candidate {candidate} was never proposed")
        return self._nodes[candidate]

    def _score(self, event: CandidateScored) -> None:
        node = self._known(event.candidate)
        before = node.evaluation(event.split)
        merged = {**before, **event.scores} if before else event.scores
        self._nodes[event.candidate] = replace(node, scores={**node.scores, event.split: merged})

    def _judge(self, event: CandidateJudged) -> None:
        node = self._known(event.candidate)
        if node.verdict is not None and node.verdict is not event.verdict:
            raise RecordError(
                f"candidate {event.candidate} is {node.verdict} and can't become {event.verdict}"
            )
        self._nodes[event.candidate] = replace(
            node,
            verdict=event.verdict,
            reason=event.reason,
            gain=event.gain,
            support=event.support,
        )
