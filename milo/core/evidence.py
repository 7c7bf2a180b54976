"""What was seen of one attempt, and what a mutator may be shown (SPEC §3.2, §6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import fsum

from milo.core.attempt import Outcome, Usage
from milo.core.events import Change, Verdict
from milo.core.fitness import Fitness, TaskScore
from milo.core.harness import Harness
from milo.core.tree import FileTree

NOTHING_FETCHED = "nothing is fetched"
"""How a request is refused whose pictures or files the model's server would have to fetch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """One model call: the request and response bodies as JSON-ready data, timed in seconds.

    `request` is as the harness sent it; `pinned` names what the gateway overrode.
    """

    request: Mapping[str, object]
    response: Mapping[str, object]
    status: int
    seconds: float
    usage: Usage = field(default_factory=Usage)
    pinned: tuple[str, ...] = ()

    @property
    def message(self) -> Mapping[str, object]:
        """The model's message of a chat completion, tool calls included; empty for none."""
        choices = self.response.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, Mapping) else None
        return message if isinstance(message, Mapping) else {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """All that an attempt left to look at.

    `stdout` and `stderr` are the harness's, bounded; `changed` the text of workspace files that
    the harness made or changed, bounded; `report` the verifier's public words (never expected
    answers); `verifier_output` is kept for the run's owner and is never shown to a mutator.
    """

    exchanges: tuple[Exchange, ...] = ()
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    changed: Mapping[str, str] = field(default_factory=dict)
    report: str = ""
    verifier_output: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One attempt on one search task as a mutator may see it."""

    instruction: str
    family: str
    outcome: Outcome
    trace: Trace
    workspace_files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """One edge of the lineage snapshot: what was tried, why, and what it did.

    `flipped_up` and `flipped_down` count search tasks whose resolution changed.
    """

    parent: str
    child: str
    round: int
    change: Change
    verdict: Verdict | None
    reason: str
    before: Fitness | None
    after: Fitness | None
    flipped_up: tuple[str, ...] = ()
    flipped_down: tuple[str, ...] = ()
    patch: str = ""
    on_path: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ParentView:
    """A parent as the mutator sees it: source, scores and evidence on the search set."""

    candidate: str
    harness: Harness
    scores: Mapping[str, TaskScore]
    evidence: tuple[Evidence, ...] = ()

    @property
    def accuracy(self) -> float:
        """Mean reward over the search tasks that it is scored on; 0 where there are none."""
        return fsum(score.reward for score in self.scores.values()) / max(1, len(self.scores))


@dataclass(frozen=True, kw_only=True, slots=True)
class Brief:
    """All that a mutator works from. Contains search-split material only.

    One parent, or two for a graft (dst's best first). `seed` feeds the mutator's own random
    generator. `error` is the reason why the mutator's last child of this round was sent back.
    `signals` point in words at evidence, and `library` holds earlier candidates to look into, where
    the strategy has such parts.
    """

    island: str
    round: int
    parents: tuple[ParentView, ...]
    snapshot: tuple[Edge, ...]
    seed: int
    niche: str = ""
    request: str = ""
    error: str = ""
    forbidden_digests: frozenset[str] = frozenset()
    signals: str = ""
    library: tuple[ParentView, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """What a mutator left: the child's tree, its own account of it, and what it spent.

    `made_from` names the harness (by content hash) that it was made from, where the mutator chose
    another than the brief's parent; "" where it didn't.
    """

    tree: FileTree
    change: Change
    usage: Usage = field(default_factory=Usage)
    made_from: str = ""
