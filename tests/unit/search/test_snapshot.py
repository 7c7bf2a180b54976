from __future__ import annotations

from search_scene import TASKS, Scene

from milo.core.events import Change, Verdict
from milo.core.evidence import Edge
from milo.core.lineage import Lineage
from milo.core.plan import MemoryKind
from milo.search.snapshot import build_snapshot, length_of

LEFT = (1, 1, 1, 0, 0, 0)


def scene() -> Scene:
    s = Scene().island("i1", (0, 0, 0, 0, 0, 1)).island("i2", LEFT)
    change = Change(title="t", diagnosis="d" * 400, hypothesis="h" * 400)
    s.candidate("i1.1", ("i1.0",), LEFT, Verdict.ADMITTED, change=change)
    s.candidate("i1.2", ("i1.0",), (0,) * 6, Verdict.REJECTED, change=change)
    s.candidate("i1.3", ("i1.0",), (), Verdict.INVALID, change=change)
    s.candidate("i1.4", ("i1.1", "i2.0"), (1,) * 6, Verdict.ADMITTED, change=change)
    return s.candidate("i1.5", ("i1.1",), (), None, change=change)


PATCHES = {f"i1.{i}": f"patch {i} " * 200 for i in range(1, 6)}


def snapshot(lineage: Lineage, **changes: object) -> tuple[Edge, ...]:
    return build_snapshot(
        lineage,
        parent="i1.4",
        island="i1",
        tasks=TASKS,
        patches=PATCHES,
        **changes,  # type: ignore[arg-type]
    )


def test_the_whole_island_is_shown_and_the_path_with_patches():
    edges = snapshot(scene().lineage)
    assert [e.child for e in edges] == ["i1.1", "i1.2", "i1.3", "i1.4", "i1.5"]
    assert [e.child for e in edges if e.on_path] == ["i1.1", "i1.4"]
    assert [bool(e.patch) for e in edges] == [True, False, False, True, False]
    assert edges[0].flipped_up == TASKS[:3]
    assert edges[0].flipped_down == TASKS[5:]
    assert edges[0].before is not None
    assert edges[2].after is None
    assert edges[3].parent == "i1.1"


def test_a_tight_limit_summarises_the_least_informative_first():
    whole = snapshot(scene().lineage)
    total = sum(map(length_of, whole))
    edges = snapshot(scene().lineage, max_chars=total - 100)
    by_child = {e.child: e for e in edges}
    assert by_child["i1.3"].change.diagnosis == ""
    assert by_child["i1.2"].change.diagnosis != ""
    assert sum(map(length_of, edges)) <= total - 100


def test_the_path_is_summarised_last_and_oldest_first_then_edges_are_dropped():
    edges = snapshot(scene().lineage, max_chars=3200)
    by_child = {e.child: e for e in edges}
    assert not by_child["i1.1"].patch
    assert by_child["i1.4"].patch
    few = snapshot(scene().lineage, max_chars=300)
    assert [e.child for e in few] == ["i1.1", "i1.4"]
    assert snapshot(scene().lineage, max_chars=0) == ()


def test_flat_memory_is_the_best_few_with_fitness_and_nothing_else():
    s = scene()
    for i in range(6, 12):
        s.candidate(f"i1.{i}", ("i1.0",), LEFT, Verdict.ADMITTED)
    s.candidate("i1.12", ("i1.0",), (), Verdict.ADMITTED)
    edges = snapshot(s.lineage, memory=MemoryKind.FLAT)
    assert len(edges) == 5
    assert edges[0].child == "i1.4"
    assert all(e.verdict is Verdict.ADMITTED and e.after for e in edges)
    assert not any(e.patch or e.reason or e.change.diagnosis or e.on_path for e in edges)


def test_a_speciated_parent_shows_its_path_through_the_source_island():
    s = scene()
    edges = build_snapshot(s.lineage, parent="i1.4", island="i9", tasks=TASKS, patches=PATCHES)
    assert [e.child for e in edges] == ["i1.1", "i1.4"]
