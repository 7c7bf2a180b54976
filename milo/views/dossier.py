"""One candidate in full: its mutator's words, patches and attempts; and a trace for readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from milo.core.attempt import Outcome
from milo.core.errors import RecordError
from milo.core.events import Change
from milo.core.evidence import Trace
from milo.core.lineage import Node
from milo.core.population import Population
from milo.store import RunReader
from milo.views.dialogue import dialogue_of
from milo.views.spending import split_of_tasks
from milo.views.text import json_ready


@dataclass(frozen=True, kw_only=True, slots=True)
class ParentPatch:
    """The unified diff from one parent; "" where a harness is not on record."""

    parent: str
    patch: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptLine:
    """One attempt; `key` names it on the command line, `trace` is the hash of its trace."""

    key: str
    task: str
    split: str
    index: int
    replicate: int
    status: str
    reward: float | None
    resolved: bool
    tokens: int
    calls: int
    dollars: float | None
    latency_s: float
    trace: str
    flags: tuple[str, ...]
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Dossier:
    """What the page and `milo show` tell of one candidate beside its place in the lineage."""

    candidate: str
    change: Change
    patches: tuple[ParentPatch, ...]
    attempts: tuple[AttemptLine, ...]


def dossier_of(reader: RunReader, population: Population, candidate: str) -> Dossier:
    """Read one candidate's dossier; raises `KeyError` for an unknown one."""
    node = population.lineage[candidate]
    splits = split_of_tasks(population)
    outcomes = reader.attempts.of_harness(node.harness)
    return Dossier(
        candidate=candidate,
        change=node.change,
        patches=patches_of(reader, node),
        attempts=tuple(attempt_line(o, splits.get(o.key.task, "")) for o in outcomes),
    )


def patches_of(reader: RunReader, node: Node) -> tuple[ParentPatch, ...]:
    """The patch from every parent, the first parent's first."""
    return tuple(
        ParentPatch(parent=parent, patch=_patch(reader, parent, node.candidate))
        for parent in node.parents
    )


def _patch(reader: RunReader, parent: str, child: str) -> str:
    """A writer that was killed may have left the journal ahead of the harnesses."""
    try:
        return reader.harnesses.patch(parent, child)
    except RecordError:
        return ""


def attempt_line(outcome: Outcome, split: str) -> AttemptLine:
    """An outcome as a line of a table."""
    key = outcome.key
    return AttemptLine(
        key=attempt_name(outcome),
        task=key.task,
        split=split,
        index=key.index,
        replicate=key.replicate,
        status=str(outcome.status),
        reward=outcome.reward,
        resolved=outcome.resolved,
        tokens=outcome.usage.tokens,
        calls=outcome.usage.calls,
        dollars=outcome.usage.dollars,
        latency_s=outcome.latency_s,
        trace=outcome.trace,
        flags=outcome.flags,
        detail=outcome.detail,
    )


def attempt_name(outcome: Outcome) -> str:
    """How the command line names an attempt of a candidate: ``TASK``, ``TASK#1``, ``TASK#0r2``."""
    key = outcome.key
    again = f"r{key.replicate}" if key.replicate else ""
    return f"{key.task}#{key.index}{again}" if key.index or again else key.task


def public_trace(trace: Trace) -> dict[str, object]:
    """A trace for a page that may be passed on: without what the verifier kept to itself, and with
    each model call as a dialogue."""
    data = json_ready(trace)
    assert isinstance(data, dict)
    calls = [
        {"said": [list(said) for said in dialogue_of(one)], "seconds": json_ready(one.seconds)}
        for one in trace.exchanges
    ]
    hidden = ("verifier_output", "exchanges")
    return {"calls": calls, **{name: v for name, v in data.items() if name not in hidden}}


def order_of_interest(population: Population) -> tuple[str, ...]:
    """Candidates in the order in which a reader wants their traces: the winner's path, the front,
    the seeds, then the newest first."""
    lineage, won = population.lineage, population.winner
    chosen: Sequence[str] = ()
    if won is not None:
        chosen = (*reversed(lineage.path_from_seed(won.candidate)), *won.front)
    seeds = [node.candidate for node in lineage if not node.parents]
    newest = [node.candidate for node in lineage][::-1]
    return tuple(dict.fromkeys((*chosen, *seeds, *newest)))
