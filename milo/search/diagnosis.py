"""Diagnosis of a stalled island from the records alone: four findings in words (SPEC §3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from milo.core.events import Verdict
from milo.core.lineage import Node
from milo.core.moves import Diagnosis, Reassign
from milo.core.ports import PopulationView
from milo.core.topology import IslandState, best_member, moved_members
from milo.search.curriculum import regrets

SOLVED = 0.5
"""A task is solved from this pass rate on."""
SMALL_PATCH = 3
MIN_DISTINCT = 2
CROWDED_SHARE = 1 / 3
NEAR = 0.1
"""Accuracies this close are one ceiling."""
SURE = 0.75
"""From this pass rate on a task is surely solved; from 1 - SURE down it is surely failed."""
GAP_SHARE = 1 / 10
"""A donor must solve more of the tasks that an island fails than this, to be sure of it."""
CHANCE_SHARE = 1 / 15
"""What differs between two harnesses on no more of the tasks than this may be chance."""

CHEAPER = 0.9
"""A child that costs no less than this share of its parent's cost is no cheaper, but for chance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One diagnosis that holds, with its figures in words, and what a move would need.

    `donor` and `root` name the island to graft from and the subtree to speciate. One that is not
    `clear` holds wherever an island stands still, and gives way to those that say why.
    """

    diagnosis: Diagnosis
    words: str
    donor: str = ""
    root: str = ""
    tasks: tuple[str, ...] = ()
    clear: bool = True


def diagnose(view: PopulationView, island: str) -> tuple[Finding, ...]:
    """Every finding that holds for the island, the most telling first; may be empty."""
    state = view.topology[island]
    if not state.members:
        return ()
    checks = (dry_mutator, exhausted_lineage, plateau, crowded_out_niche)
    found = [finding for check in checks if (finding := check(view, state)) is not None]
    return tuple(sorted(found, key=lambda finding: not finding.clear))


def exhausted_lineage(view: PopulationView, state: IslandState) -> Finding | None:
    """No child admitted lately, while another island's best solves tasks that this one fails."""
    recent = recent_children(view, state)
    if len(recent) < view.patience or any(n.verdict is Verdict.ADMITTED for n in recent):
        return None
    failed = _surely_failed(view, state)
    gaps = {
        other.island: tuple(t for t in state.search if t in failed & _best_solves(view, other))
        for other in view.topology.islands.values()
        if other.island != state.island and other.members
    }
    donor = max(gaps, key=lambda name: len(gaps[name]), default="")
    if not donor or len(gaps[donor]) <= GAP_SHARE * len(state.search):
        return None
    words = (
        f"none of the last {len(recent)} children of {state.island} was admitted, while {donor} "
        f"solves {len(gaps[donor])} of {len(state.search)} search tasks that {state.island} fails"
    )
    return Finding(
        diagnosis=Diagnosis.EXHAUSTED_LINEAGE, words=words, donor=donor, tasks=gaps[donor]
    )


def dry_mutator(view: PopulationView, state: IslandState) -> Finding | None:
    """Children of the current mutator repeatedly rejected, inert, or variations of failures."""
    recent = recent_children(view, state, since_reassign=True)
    if len(recent) < view.patience or any(_is_gain(view, state, node) for node in recent):
        return None
    inert = sum(_is_inert(view, node) for node in recent)
    repeated = len(recent) - len({node.change.title for node in recent})
    invalid = sum(node.verdict is Verdict.INVALID for node in recent)
    lucky = sum(node.verdict is Verdict.ADMITTED for node in recent)
    admitted = f"{lucky} admitted by chance, " if lucky else ""
    words = (
        f"the last {len(recent)} children of {state.mutator or 'the mutator'} on {state.island} "
        f"brought nothing: {invalid} invalid, {admitted}{len(recent) - invalid - lucky} not "
        f"admitted, {inert} of these inert or of at most {SMALL_PATCH} changed lines, {repeated} "
        "repeating an edit"
    )
    telling = max(inert + invalid, repeated)
    return Finding(diagnosis=Diagnosis.DRY_MUTATOR, words=words, clear=2 * telling > len(recent))


def crowded_out_niche(view: PopulationView, state: IslandState) -> Finding | None:
    """A subtree that solves tasks the island's best fails, and that is rarely a parent now."""
    best = best_member(state, view.lineage)
    solved = _solved(view.lineage[best], state.search)
    recent = recent_children(view, state)
    enough = max(MIN_DISTINCT, CHANCE_SHARE * len(state.search))
    candidates = []
    for root in state.members:
        moved = moved_members(state, root, view.lineage) if root != state.root else ()
        if root not in moved:
            continue
        apart = [_solved(view.lineage[m], state.search) - solved for m in moved]
        distinct = max(apart, key=len)
        share = _share_of_parents(recent, view.lineage.subtree(root))
        if len(distinct) >= enough and recent and share <= CROWDED_SHARE:
            candidates.append((len(distinct), root, tuple(sorted(distinct)), share))
    if not candidates:
        return None
    count, root, tasks, share = max(candidates, key=lambda found: found[0])
    words = (
        f"the subtree of {root} solves {count} search tasks that {state.island}'s best, {best}, "
        f"fails, but was the parent of {share:.0%} of the last {len(recent)} children"
    )
    return Finding(diagnosis=Diagnosis.CROWDED_OUT_NICHE, words=words, root=root, tasks=tasks)


def plateau(view: PopulationView, state: IslandState) -> Finding | None:
    """All islands stand near the same ceiling, and none has got better lately."""
    running = [s for s in view.topology.islands.values() if s.members and not s.closed]
    same_set = [s for s in running if s.epoch == state.epoch]
    fitness = [
        view.lineage[best_member(s, view.lineage)].fitness("search", s.search) for s in same_set
    ]
    accuracies = [f.accuracy for f in fitness if f is not None]
    if not accuracies or any(_rises(view, s) for s in same_set):
        return None
    if max(accuracies) - min(accuracies) > NEAR:
        return None
    tasks = tuple(r.task for r in regrets(view) if r.qualifies)
    words = (
        f"all {len(accuracies)} islands stand between {min(accuracies):.3f} and "
        f"{max(accuracies):.3f} on the search set, and none has got better lately; "
        f"{len(tasks)} tasks are solved by few harnesses and failed by most"
    )
    several = len(accuracies) > 1  # one island is always as good as all
    return Finding(diagnosis=Diagnosis.PLATEAU, words=words, tasks=tasks, clear=several)


def recent_children(
    view: PopulationView, state: IslandState, *, since_reassign: bool = False
) -> tuple[Node, ...]:
    """The island's judged children of its last rounds, as many as the patience, oldest first."""
    since = -1
    if since_reassign:
        since = max(
            (r for i, r, m in view.topology.moves if i == state.island and isinstance(m, Reassign)),
            default=-1,
        )
    children = [n for n in view.lineage.of_island(state.island) if n.parents and n.verdict]
    return tuple(n for n in children if n.round >= since)[-max(1, view.patience) :]


def _rises(view: PopulationView, state: IslandState) -> bool:
    """Whether the island is young, or one of its last children is its best."""
    recent = recent_children(view, state)
    if len(recent) < view.patience:
        return True
    new = {node.candidate for node in recent}
    old = max((_accuracy(view, state, m) for m in state.members if m not in new), default=0.0)
    return any(_accuracy(view, state, m) > old for m in state.members if m in new)


def _accuracy(view: PopulationView, state: IslandState, candidate: str) -> float:
    fitness = view.lineage[candidate].fitness("search", state.search)
    return 0.0 if fitness is None else fitness.accuracy


def _best_solves(view: PopulationView, state: IslandState) -> frozenset[str]:
    """What the harness that would be grafted surely solves."""
    scores = view.lineage[best_member(state, view.lineage)].evaluation("search")
    return frozenset(task for task, score in scores.items() if score.reward >= SURE)


def _surely_failed(view: PopulationView, state: IslandState) -> frozenset[str]:
    """Search tasks that some member has measured and that no member solves more than seldom."""
    members = [view.lineage[member].evaluation("search") for member in state.members]
    rates: dict[str, float] = {}
    for scores in members:
        for task, score in scores.items():
            rates[task] = max(score.reward, rates.get(task, 0.0))
    return frozenset(task for task, best in rates.items() if best <= 1 - SURE)


def _solved(node: Node, tasks: Sequence[str]) -> frozenset[str]:
    scores = node.evaluation("search")
    return frozenset(t for t in tasks if t in scores and scores[t].reward >= SOLVED)


def _is_gain(view: PopulationView, state: IslandState, node: Node) -> bool:
    """Whether a child was admitted and is more than its parent scored again.

    It is no more where the island stalls, so that it was not better on validation, and it neither
    solves other tasks, but for chance, nor costs less.
    """
    if node.verdict is not Verdict.ADMITTED:
        return False
    if state.stall < view.patience:
        return True
    parent = view.lineage[node.parents[0]]
    shared = [task for task in node.evaluation("search") if task in parent.evaluation("search")]
    mine, before = node.fitness("search", shared), parent.fitness("search", shared)
    if mine is None or before is None or not _behaves_as(node, parent):
        return True
    return mine.tokens < CHEAPER * before.tokens or mine.latency_s < CHEAPER * before.latency_s


def _is_inert(view: PopulationView, node: Node) -> bool:
    """Whether the child behaves as its parent, but for chance, or hardly differs in source."""
    if node.verdict is Verdict.INVALID:
        return False
    return node.patch_lines <= SMALL_PATCH or _behaves_as(node, view.lineage[node.parents[0]])


def _behaves_as(node: Node, parent: Node) -> bool:
    """Whether the two were measured on the same tasks and score alike, but for chance."""
    mine, other = node.evaluation("search"), parent.evaluation("search")
    shared = [task for task in mine if task in other]
    changed = sum(mine[t].reward != other[t].reward for t in shared)
    return bool(shared) and changed <= CHANCE_SHARE * len(shared)


def _share_of_parents(children: Sequence[Node], subtree: Sequence[str]) -> float:
    inside = set(subtree)
    return sum(n.parents[0] in inside for n in children) / max(1, len(children))
