"""Search methods of other packages as mutators: they choose, we score, meter and record.

A peer's driver runs in a sandbox as long as its island lives. Each time it wants a candidate
scored, it asks (`milo/agents/peers/milo_peer.py`). A new candidate on the whole search set becomes
the child of the round; one on fewer tasks is measured on these, and is a child only if the peer
goes on with it, else it is on record as dropped; what is known is answered from the record. Its
model is reached through the gateway, as everybody's.

Nothing of a driver survives a kill: a run that goes on starts the peer's search anew, from the best
harness so far.
"""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from milo.agents.brief import constraints
from milo.agents.brief_attempts import task_text
from milo.agents.cli.description import Description
from milo.agents.cli.ending import ended
from milo.agents.cli_agent import agent_job
from milo.agents.peer_talk import Question, Talk
from milo.core.errors import ConfigError, MiloError, SearchOver, UserError
from milo.core.events import Change
from milo.core.evidence import Brief, Evidence, Proposal
from milo.core.fitness import fitness_on
from milo.core.harness import MANIFEST_NAME
from milo.core.peering import Measured, MeasuringWorkshop
from milo.core.ports import Workshop
from milo.core.station import AgentRun, Station
from milo.core.tree import FileTree

PEERS = ("gepa", "gepa_anything", "openevolve", "shinka")
"""Peers that come with a description and a driver."""

DRIVERS_AT = "/opt/milo-peers"
FEEDBACK_CHARS = 4_000
TAIL_CHARS = 600
IDLE = 500
"""Questions in a row that cost no attempt after which a peer's search is over: a budget of attempts
alone would never end one that has nothing left to improve."""

OBJECTIVE = (
    "Improve a harness: a small program that drives a language model to do tasks in a folder. The "
    "model is frozen; only the harness changes. Accuracy counts most; tokens and seconds per "
    "attempt count too."
)


class PeerDropped(MiloError):
    """A peer gave up a candidate by its own rule, before it was scored on the whole search set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """A candidate that a peer has had measured on a part of the search set; how it did there."""

    tree: FileTree
    tasks: frozenset[str]
    accuracy: float


class PeerMutator:
    """Drives one peer for one island. One owner, one event loop; `name` is as the pool names it."""

    def __init__(self, description: Description, name: str, station: Station) -> None:
        self.description = description
        self.name = name
        self._station = station
        self._talk: Talk | None = None
        self._root = FileTree()
        self._kept: dict[str, FileTree] = {}
        self._open: Question | None = None
        self._ahead: Question | None = None
        self._tried: Tried | None = None
        self._idle = 0

    async def propose(self, brief: Brief, workshop: Workshop) -> Proposal:
        """The next candidate that the peer wants scored on the whole search set.

        Raises `PeerDropped` for one that it gave up before, `SearchOver` once it has ended.
        """
        if not isinstance(workshop, MeasuringWorkshop):
            raise ConfigError(f"mutator {self.name!r}", "a workshop that measures", "none")
        talk = self._talk or self._begin(brief, workshop.scope)
        talk.calls_in(workshop.scope)
        try:
            proposal = await self._next(talk, brief, workshop)
        finally:
            told = talk.report_in(workshop.scope)
            workshop.add(told)
        return replace(proposal, usage=told.usage)

    async def close(self) -> None:
        """End the driver and every process of it."""
        if self._talk is not None:
            await self._talk.close()

    # --- the talk --------------------------------------------------------------------------------

    def _begin(self, brief: Brief, scope: str) -> Talk:
        self._root = brief.parents[0].harness.tree
        self._kept = {self._root.digest: self._root}
        self._talk = Talk()
        job = agent_job(self.description, self._station, self._workspace(brief), brief, scope)
        drivers = FileTree.from_dir(Path(__file__).parent / "peers")
        job = replace(
            job,
            mounts={**job.mounts, DRIVERS_AT: drivers},
            doors={"/peer/evaluate": self._talk.ask},
            on_session=self._talk.on_session,
        )
        self._talk.start(self._station.run(job))
        return self._talk

    def _workspace(self, brief: Brief) -> FileTree:
        parent = brief.parents[0].harness
        texts = {
            path: file.data.decode()
            for path, file in self._root.items()
            if path != MANIFEST_NAME and parent.may_edit(path) and is_text(file.data)
        }
        about = {
            "tasks": sorted(brief.parents[0].scores),
            "seed": brief.seed,
            "objective": OBJECTIVE,
            "background": constraints(brief),
            "files": sorted(texts),
        }
        files = {f"harness/{path}": text for path, text in texts.items()}
        return FileTree.of_texts({**files, "peer.json": json.dumps(about, indent=1)})

    async def _next(self, talk: Talk, brief: Brief, workshop: MeasuringWorkshop) -> Proposal:
        await self._tell_what_became(brief, workshop)
        while True:
            question = self._ahead or await talk.next()
            self._ahead = None
            if isinstance(question, AgentRun):
                self._over(question)
            if self._idle >= IDLE:
                raise SearchOver(f"{self.description.title} has asked for nothing new {IDLE} times")
            tree = self._tree_of(question)
            if tree is None:
                continue
            self._look_back(tree, question)
            if (
                self._asks_for_the_rest(question, brief)
                and tree.digest not in brief.forbidden_digests
            ):
                self._open, self._tried, self._idle = question, None, 0
                return self._proposal(tree, question)
            await self._measure(tree, question, brief, workshop)

    async def _tell_what_became(self, brief: Brief, workshop: MeasuringWorkshop) -> None:
        """Answer the question that the last proposal came from, now that it is decided."""
        question, self._open = self._open, None
        if question is None:
            return
        tree = self._tree_of(question)
        assert tree is not None, "it was proposed"
        if tree.digest in brief.forbidden_digests:
            self._kept[tree.digest] = tree
            await self._measure(tree, question, brief, workshop)
        else:
            question.answer(refusal(brief.error or "the candidate was refused"))

    async def _measure(
        self, tree: FileTree, question: Question, brief: Brief, workshop: MeasuringWorkshop
    ) -> None:
        measured = await workshop.measure(tree, question.tasks)
        answer = answer_of(measured, question.tasks)
        self._idle += 1
        if tree.digest not in brief.forbidden_digests and not measured.refusal:
            self._idle = 0
            before = frozenset[str]() if self._tried is None else self._tried.tasks
            tasks, accuracy = before.union(question.tasks), float(str(answer["accuracy"]))
            self._tried = Tried(tree=tree, tasks=tasks, accuracy=accuracy)
        question.answer(answer)

    def _asks_for_the_rest(self, question: Question, brief: Brief) -> bool:
        """Whether with this question a candidate is wanted on the whole search set: peers that keep
        scores ask for the tasks that they lack only."""
        before = frozenset[str]() if self._tried is None else self._tried.tasks
        return before.union(question.tasks) >= set(brief.parents[0].scores)

    def _look_back(self, tree: FileTree, question: Question) -> None:
        """Raise `PeerDropped` where the peer has gone on from a candidate that was only tried."""
        tried = self._tried
        if tried is not None and tried.tree.digest != tree.digest:
            self._tried, self._ahead = None, question
            raise PeerDropped(
                f"{self.name} dropped it by its own rule: {tried.accuracy:.3f} on "
                f"{len(tried.tasks)} search tasks"
            )

    def _tree_of(self, question: Question) -> FileTree | None:
        """The candidate's tree; None where there is none, and the peer has been told."""
        try:
            return self._root.with_texts(question.files)
        except UserError as error:
            question.answer(refusal(str(error)))
            return None

    def _proposal(self, tree: FileTree, question: Question) -> Proposal:
        parent = nearest(tree, self._kept)
        change = Change(title=question.note or f"a candidate of {self.description.title}")
        return Proposal(tree=tree, change=change, made_from=parent)

    def _over(self, run: AgentRun) -> NoReturn:
        end = str(ended(self.description, run))
        if run.exit.code and not run.exit.limit:
            words = " ".join(run.exit.stderr[-TAIL_CHARS:].split())
            end = f"it ended with code {run.exit.code}: {words}"
        raise SearchOver(f"{self.description.title} ended its search: {end}")


def answer_of(measured: Measured, tasks: Sequence[str]) -> Mapping[str, object]:
    """What the driver is told of a measurement."""
    if measured.refusal:
        return refusal(measured.refusal)
    scores = measured.scores
    valid = [task for task in tasks if task in scores]
    if not valid:
        return refusal("no attempt was valid")
    fitness = fitness_on(scores, valid)
    return {
        "refused": "",
        "scores": {task: scores[task].reward for task in valid},
        "feedback": feedback(measured.evidence),
        "accuracy": fitness.accuracy,
        "tokens": fitness.tokens,
        "seconds": fitness.latency_s,
    }


def refusal(reason: str) -> Mapping[str, object]:
    """What the driver is told of a candidate that was not run: as bad as can be."""
    return {
        "refused": reason,
        "scores": {},
        "feedback": {},
        "accuracy": 0.0,
        "tokens": 0.0,
        "seconds": 0.0,
    }


def feedback(evidence: Sequence[Evidence]) -> dict[str, str]:
    """The attempts on each task in words."""
    found: dict[str, list[Evidence]] = {}
    for item in evidence:
        found.setdefault(item.outcome.key.task, []).append(item)
    return {task: task_text(items, FEEDBACK_CHARS) for task, items in found.items()}


def nearest(tree: FileTree, among: dict[str, FileTree]) -> str:
    """The digest of the tree with the fewest differing lines: peers don't tell their parents."""
    return min(reversed(among), key=lambda digest: distance(tree, among[digest]))


def distance(one: FileTree, other: FileTree) -> int:
    """Lines that differ between two trees."""
    count = 0
    for path in one.changed_paths(other):
        old, new = (t.text(path).splitlines() if path in t else [] for t in (other, one))
        count += sum(line[:1] in "+-" for line in difflib.unified_diff(old, new, n=0))
    return count


def is_text(data: bytes) -> bool:
    """Whether a file is UTF-8 text."""
    with contextlib.suppress(UnicodeDecodeError):
        data.decode()
        return True
    return False
