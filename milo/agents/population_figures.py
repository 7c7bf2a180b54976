"""Figures of a population for whoever moves: curves, edits by what they touched, the mutators'
record, pass rates by task, and what moves led to. All of it is counted from the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from milo.core.attempt import Usage
from milo.core.events import Verdict
from milo.core.lineage import Node
from milo.core.moves import Move
from milo.core.ports import PopulationView
from milo.core.topology import IslandState, best_member

PARTS = 8
POINTS = 12
UNKNOWN = "parts unknown"


def curve(view: PopulationView, state: IslandState) -> str:
    """The rounds in which the best accuracy on the current search set rose, and to what."""
    points: list[tuple[int, float]] = []
    for node in _admitted(_kin(view, state)):
        fitness = node.fitness("search", state.search)
        if fitness is not None and (not points or fitness.accuracy > points[-1][1]):
            points.append((node.round, fitness.accuracy))
    more = "... " if len(points) > POINTS else ""
    shown = ", ".join(f"{round_}: {accuracy:.3f}" for round_, accuracy in points[-POINTS:])
    return more + shown


def touched(view: PopulationView, state: IslandState) -> list[str]:
    """The island's edits, clustered by what they touched; the parts most often tried first."""
    clusters: dict[str, list[Node]] = {}
    for node in view.lineage.of_island(state.island):
        if node.parents and node.verdict is not None:
            for part in node.change.touched or (UNKNOWN,):
                clusters.setdefault(part, []).append(node)
    order = sorted(clusters, key=lambda part: (-len(clusters[part]), part))
    rows = [f"- {part}: {_verdicts(clusters[part])}" for part in order[:PARTS]]
    if len(order) > PARTS:
        rows.append(f"- and {len(order) - PARTS} parts that were tried less often")
    return ["Edits by what they touched:", *rows] if rows else []


def records(view: PopulationView) -> Iterator[str]:
    """What every mutator of the pool has brought so far, and what it has cost."""
    by_mutator: dict[str, list[Node]] = {name: [] for name in view.pool}
    for node in view.lineage:
        if node.parents and node.verdict is not None:
            by_mutator.setdefault(node.mutator, []).append(node)
    for name, nodes in by_mutator.items():
        spent = sum((node.usage for node in nodes), Usage())
        dollars = "" if not spent.dollars else f", ${spent.dollars:.2f}"
        cost = f"; {spent.tokens} tokens{dollars}" if spent.calls else ""
        yield f"- {name}: {_verdicts(nodes)}{cost}"


def matrix(view: PopulationView, most: int) -> Iterator[str]:
    """Pass rates by task: of each island's best, of the best admitted harness, and the mean of all
    of them. Tasks with the largest gap between the last two come first: few solve them."""
    islands = [state for state in view.topology.islands.values() if state.members]
    admitted = list(_admitted(view.lineage))
    bests = {s.island: view.lineage[best_member(s, view.lineage)] for s in islands}
    rows = []
    for task in view.search_split:
        rates = [rate for node in admitted if (rate := _rate(node, task)) is not None]
        if rates:
            rows.append((max(rates) - sum(rates) / len(rates), task, rates))
    rows.sort(key=lambda row: (-row[0], row[1]))
    yield "Pass rates by task (islands' bests, the best of all, the mean of all admitted):"
    yield "task | " + " | ".join([*bests, "most", "mean"])
    for _, task, rates in rows[:most]:
        cells = [_cell(_rate(node, task)) for node in bests.values()]
        yield " | ".join([task, *cells, _cell(max(rates)), _cell(sum(rates) / len(rates))])
    if len(rows) > most:
        yield f"and {len(rows) - most} tasks more"
    if len(rows) < len(view.search_split):
        yield f"{len(view.search_split) - len(rows)} tasks of the search split are unmeasured"


def effect(view: PopulationView, move: Move) -> Iterator[str]:
    """What a move led to on each island that it reached, in words."""
    reached = [(island, at) for island, at, done in view.topology.moves if done == move]
    for island, at in reached:
        yield _since(view, view.topology[island], at)
    if move.kind == "speciate" and move.new_island in view.topology.islands:
        yield _since(view, view.topology[move.new_island], 0)
    void = [island for island, _, done in view.topology.voided if done == move]
    if void:
        yield f"void on {', '.join(void)}"
    if not reached and not void:
        yield "not yet in effect"


def _since(view: PopulationView, state: IslandState, at: int) -> str:
    """What became of an island's children from a round on, and how far its best has come."""
    made = [n for n in view.lineage.of_island(state.island) if n.round >= at and n.parents]
    earlier = (node for node in _kin(view, state) if node.round < at)
    before, now = _best(state, earlier), _best(state, _kin(view, state))
    return (
        f"{state.island} from round {at}: {_verdicts(made)}, "
        f"best search accuracy {_cell(before)} -> {_cell(now)}"
    )


def _best(state: IslandState, nodes: Iterable[Node]) -> float | None:
    """The highest accuracy of admitted harnesses on the island's search set; None for none."""
    found = [node.fitness("search", state.search) for node in _admitted(nodes)]
    return max((fitness.accuracy for fitness in found if fitness is not None), default=None)


def _kin(view: PopulationView, state: IslandState) -> Iterable[Node]:
    """The candidates that stand on an island, and those that it made; in order of proposal."""
    members = {*state.members, *state.moved_out}
    return (n for n in view.lineage if n.island == state.island or n.candidate in members)


def _admitted(nodes: Iterable[Node]) -> Iterator[Node]:
    return (node for node in nodes if node.verdict is not None and node.verdict.is_member)


def _rate(node: Node, task: str) -> float | None:
    score = node.evaluation("search").get(task)
    return None if score is None else score.reward


def _cell(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.2f}"


def _verdicts(nodes: Iterable[Node]) -> str:
    """How many children there were, by verdict, and what the admitted ones gained."""
    found = list(nodes)
    counts = Counter(node.verdict for node in found)
    gain = sum(node.gain for node in found if node.verdict is Verdict.ADMITTED)
    told = [f"{counts[v]} {v}" for v in Verdict if v is not Verdict.SEED and counts[v]]
    if counts[None]:
        told.append(f"{counts[None]} unjudged")
    gained = f", hypervolume +{gain:.4f}" if gain else ""
    return (", ".join(told) or "no children") + gained
