"""What the page draws on its canvases: a mark for every candidate, an edge for every parent, a
birth for every speciated island, and the raw objective as a ratchet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from runs import page_of, records_of, toy, write_synthetic

from milo.core.events import CandidateScored
from milo.core.objective import Objective, Step, ratchet
from milo.core.population import Population

ALL_LANES = "() => milo.lanes.surface.height >= milo.lanes.order.length * milo.lanes.laneHeight"
DRAWN = """position => {
  const found = { marks: {}, edges: [], born: [] };
  const { mark, words } = Drawing;
  const { edge } = milo.lanes;
  milo.lanes.follows = false;
  milo.lanes.fit();
  Drawing.mark = (context, ...more) => {
    if (context.canvas.id === "lanes") found.marks[more[3]] = (found.marks[more[3]] || 0) + 1;
    mark(context, ...more);
  };
  Drawing.words = (context, text, ...more) => {
    if (String(text).startsWith("born of")) found.born.push(text);
    words(context, text, ...more);
  };
  milo.lanes.edge = function (path, parent, child, fine) {
    found.edges.push(`${parent.candidate} ${child.candidate}`);
    edge.call(this, path, parent, child, fine);
  };
  milo.lanes.seek(position);
  Object.assign(Drawing, { mark, words });
  delete milo.lanes.edge;
  return found;
}"""


def test_the_lanes_draw_every_verdict_every_graft_and_every_birth(
    browser: Any, small: Path
) -> None:
    records = records_of(small)
    context = browser.new_context(viewport={"width": 1900, "height": 1200})
    page = context.new_page()
    page.goto(page_of(small))
    page.wait_for_selector("html[data-ready]")
    # Room for every lane: what is out of sight is not drawn.
    page.add_style_tag(content=".lanes-scroll { height: 1150px !important }")
    page.wait_for_function(ALL_LANES)
    for position in (len(records) // 3, len(records)):
        population = Population.of(records[:position])
        drawn = page.evaluate(DRAWN, position)
        verdicts = Counter(str(n.verdict) if n.verdict else "null" for n in population.lineage)
        born = [s for s in population.topology.islands.values() if s.source]
        verdicts["seed"] += len(born)  # the mark at the head of a new lane
        marks = {("null" if k == "undefined" else k): n for k, n in drawn["marks"].items()}
        assert marks == {k: n for k, n in verdicts.items() if n}
        assert sorted(drawn["edges"]) == sorted(
            f"{parent} {node.candidate}" for node in population.lineage for parent in node.parents
        )
        assert drawn["born"] == [f"born of {s.source} at {s.root}" for s in born]
    assert any(len(node.parents) > 1 for node in population.lineage), "a graft is among them"
    assert born and verdicts["rejected"] and verdicts["invalid"]
    context.close()


def test_the_raw_objective_is_a_ratchet_against_time(watched: Any, tmp_path: Path) -> None:
    write_synthetic(tmp_path / "run", 40, objective=toy)
    records = records_of(tmp_path / "run")
    page = watched.open(page_of(tmp_path / "run"))
    assert page.locator("#objective-card").is_visible()
    timed: list[tuple[float, Objective, str]] = []
    steps = "at => [...milo.reel.problems.keys()].map(p => [p, milo.reel.ratchetAt(p, at)])"
    for position, record in enumerate(records, start=1):
        if isinstance(record.event, CandidateScored):
            seconds = record.time - records[0].time
            timed += [
                (seconds, toy(task, score.reward), record.event.candidate)
                for task, score in record.event.scores.items()
            ]
        if position % 40 and position < len(records):
            continue
        wanted = ratchet(timed)
        for problem, course in page.evaluate(steps, position):
            known = wanted.get(problem, (Step(0.0, toy_start(problem)),))
            assert [tuple(step) for step in course] == list(known), f"{problem} at {position}"
    page.select_option("#problem", "toy-max")
    best = max(result.value for _, result, _ in timed if result.problem == "toy-max")
    assert f"Best so far: {best}" in page.inner_text("#objective-words")
    assert "Larger is better" in page.inner_text("#objective-words")
    assert watched.faults == []


def toy_start(problem: str) -> float:
    return 0.381 if problem == "toy-min" else 2.6


def test_a_run_without_objectives_shows_no_such_card(watched: Any, searched: Path) -> None:
    page = watched.open(page_of(searched))
    assert not page.locator("#objective-card").is_visible()
