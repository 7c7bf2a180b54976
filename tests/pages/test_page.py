"""The replay page in a real Chromium: what it shows is what the journal says, value by value."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journal import state_of
from runs import RunWriter, page_of, records_of, synthetic

from milo.core.events import Record, RoundEnded
from milo.core.population import Population
from milo.store import RunReader
from milo.views.serving import LiveFilm, PageServer


def shown(page: Any, position: int) -> dict[str, Any]:
    """The page's state at a position, in the shape of `state_of`."""
    state = page.evaluate("at => JSON.stringify(milo.stateAt(at))", position)
    found: dict[str, Any] = json.loads(state)
    run = found["run"]
    started = run.pop("started")
    run["name"] = started["name"] if started else None
    run["model"] = started["model"] if started else None
    for node in found["candidates"]:
        if node["verdict"]:
            node["verdict"].pop("round")
    found["consultations"] = [c["answer"] for c in found["consultations"]]
    return found


def positions(records: list[Record]) -> list[int]:
    """Every round's end, and others from the start to the end."""
    rounds = [n for n, r in enumerate(records, start=1) if isinstance(r.event, RoundEnded)]
    some = range(0, len(records), max(1, len(records) // 18))
    return sorted({*rounds, *some, len(records)})


@pytest.mark.parametrize("kind", ["searched", "moved"])
def test_at_every_round_the_page_shows_exactly_the_journals_state(
    kind: str, watched: Any, request: pytest.FixtureRequest
) -> None:
    run = request.getfixturevalue(kind)
    records = records_of(run)
    page = watched.open(page_of(run))
    assert page.evaluate("milo.reel.length") == len(records)
    population, done, kept = Population(), 0, []
    for number, position in enumerate(positions(records)):
        for record in records[done:position]:
            population.apply(record.event)
        done = position
        wanted = state_of(population)
        assert shown(page, position) == wanted, f"position {position}"
        if number % 9 == 0:
            kept.append((position, json.dumps(wanted)))
    for position, former in reversed(kept):  # folding backwards is another way through the page
        assert shown(page, position) == json.loads(former), f"back at position {position}"
    assert watched.faults == []


def test_going_to_a_round_shows_the_state_in_which_every_open_island_has_ended_it(
    watched: Any, searched: Path
) -> None:
    records = records_of(searched)
    page = watched.open(page_of(searched))
    page.fill("#go-round", "2")
    page.press("#go-round", "Enter")
    position = page.evaluate("milo.position()")
    population = Population.of(records[:position])
    states = population.topology.islands.values()
    assert all(state.closed or state.round >= 2 for state in states)
    last = records[position - 1].event
    assert isinstance(last, RoundEnded)
    earlier = Population.of(records[: position - 1]).topology.islands.values()
    assert any(not state.closed and state.round < 2 for state in earlier)
    page.wait_for_selector(f"html[data-position='{position}']")
    rows = page.locator("#island-rows tr").all_inner_texts()
    cells = [row.split("\t") for row in rows]
    assert [row[0] for row in cells] == [state.island for state in states]
    assert [row[2] for row in cells] == [str(max(0, state.round)) for state in states]
    assert [row[3] for row in cells] == [str(len(state.members)) for state in states]
    assert [row[4] for row in cells] == [f"{100 * s.best_validation:.1f}" for s in states]
    assert [row[5] for row in cells] == [str(state.stall) for state in states]


def test_the_page_needs_nothing_but_itself(watched: Any, small: Path) -> None:
    url = page_of(small)
    page = watched.open(url)
    page.evaluate("milo.choose(milo.idOf('i1.1'))")
    page.wait_for_selector("#details .patch")
    assert watched.requests == [url]
    assert watched.faults == []


def test_a_click_opens_the_patch_the_verdict_the_costs_and_a_trace(
    watched: Any, searched: Path
) -> None:
    with RunReader(searched) as reader:
        lineage = reader.population().lineage
        node = next(n for n in lineage if n.parents and n.verdict)
        patch = reader.harnesses.patch(node.parents[0], node.candidate)
    page = watched.open(page_of(searched))
    page.click(f"#candidates button:text-is('{node.candidate}')")
    pane = page.locator("#details")
    pane.locator(".patch").wait_for()
    assert pane.locator(".patch").inner_text().split() == patch.split()
    words = pane.inner_text()
    assert str(node.verdict) in words and node.reason in words and node.change.title in words
    pane.locator("button:text-is('open')").first.click()
    pane.locator("tr.trace").wait_for()
    page.keyboard.press("Escape")
    assert not pane.is_visible()
    assert watched.faults == []


def test_a_click_on_the_canvas_opens_the_candidate_under_it(watched: Any, searched: Path) -> None:
    page = watched.open(page_of(searched))
    x, y = page.evaluate("(c => [milo.lanes.x(c), milo.lanes.y(c)])(milo.idOf('i1.1'))")
    page.click("#lanes", position={"x": x, "y": y})
    page.locator("#details").wait_for()
    assert page.inner_text("#details-title") == "i1.1"


def test_what_the_verifier_kept_to_itself_is_not_in_the_page(watched: Any, small: Path) -> None:
    url = page_of(small)
    page = watched.open(url)
    ids = page.evaluate("[...document.querySelectorAll('script[id^=trace-]')].map(s => s.id)")
    assert len(ids) > 100
    unpacked = page.evaluate("id => Data.trace(id.slice(6)).then(JSON.stringify)", ids[0])
    assert "checked" in unpacked and "EXPECTED-ANSWER" not in unpacked


def test_a_file_with_little_room_says_where_a_trace_is_left_out(watched: Any, small: Path) -> None:
    page = watched.open(page_of(small, trace_bytes=0))
    page.evaluate("milo.choose(milo.idOf('i1.1'))")
    page.locator("#details button:text-is('open')").first.click()
    assert "leaves this trace out" in page.inner_text("#details tr.trace")


def test_markup_in_a_record_stays_text(watched: Any, tmp_path: Path) -> None:
    """A mutator's words come from a model; they must never run in the owner's browser."""
    groups = synthetic(12)
    evil = (
        "<img src=x onerror=\"window.broken='yes'\"></script><script>window.broken='yes'</script>"
    )
    for _, events in groups:
        for event in events:
            if hasattr(event, "change"):
                object.__setattr__(event.change, "title", evil)
                object.__setattr__(event.change, "diagnosis", evil)
    writer = RunWriter(tmp_path / "run")
    writer.write(groups)
    writer.close()
    page = watched.open(page_of(tmp_path / "run"))
    page.evaluate("milo.choose(milo.idOf('i1.1'))")
    page.wait_for_selector("#details .patch")
    assert page.evaluate("window.broken") is None
    assert evil in page.inner_text("#details")
    assert watched.faults == []


def test_play_runs_to_the_end_and_the_keyboard_moves_through_the_film(
    watched: Any, searched: Path
) -> None:
    page = watched.open(page_of(searched))
    total = page.evaluate("milo.reel.length")
    page.keyboard.press("Home")
    assert page.evaluate("milo.position()") == 0
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("milo.position()") == 2
    page.keyboard.press("PageDown")
    first = page.evaluate("milo.position()")
    assert isinstance(records_of(searched)[first - 1].event, RoundEnded)
    page.select_option("#speed", "4")
    page.focus("body")
    page.keyboard.press("k")
    assert page.get_attribute("#play", "aria-pressed") == "true"
    page.wait_for_function("at => milo.position() > at", arg=first)
    page.keyboard.press("k")
    assert page.get_attribute("#play", "aria-pressed") == "false"
    page.keyboard.press("End")
    assert page.evaluate("milo.position()") == total


def test_arrow_keys_walk_the_tree_and_say_where_they_are(watched: Any, searched: Path) -> None:
    page = watched.open(page_of(searched))
    page.focus("#lanes")
    page.keyboard.press("ArrowDown")
    root = page.inner_text("#chosen").split(",")[0]
    page.keyboard.press("ArrowRight")
    child = page.inner_text("#chosen").split(",")[0]
    assert root in records_of_parents(searched)[child]
    page.keyboard.press("Enter")
    page.locator("#details").wait_for()
    assert page.inner_text("#details-title") == child


def records_of_parents(run: Path) -> dict[str, tuple[str, ...]]:
    with RunReader(run) as reader:
        return {node.candidate: node.parents for node in reader.population().lineage}


# --- served --------------------------------------------------------------------------------------


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[tuple[RunWriter, str, list[Any]]]:
    """A run that is being written, the address of its page, and the groups still to come."""
    groups = synthetic(40)
    writer = RunWriter(tmp_path / "run")
    writer.write(groups[:12])
    load = {"slots_busy": 3, "slots_total": 8, "queued": 5}
    film = LiveFilm(tmp_path / "run", lambda: load, lambda: 0.0)
    server = PageServer(film)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield writer, server.url, groups[12:]
    server.stop()
    thread.join()
    writer.close()


def test_a_served_page_follows_the_run_as_it_grows(
    watched: Any, growing: tuple[RunWriter, str, list[Any]]
) -> None:
    writer, url, rest = growing
    page = watched.open(url)
    before = page.evaluate("milo.reel.length")
    assert page.evaluate("milo.position()") == before
    assert page.inner_text("#state") == "running"
    assert page.inner_text("#load") == "3 of 8 slots busy, 5 queued"
    writer.write(rest[:20])
    page.wait_for_function("n => milo.reel.length > n && milo.position() > n", arg=before)
    page.keyboard.press("Home")
    writer.write(rest[20:])
    total = len(records_of(writer.store.path))
    page.wait_for_function("n => milo.reel.length === n", arg=total)
    assert page.evaluate("milo.position()") == 0
    assert shown(page, total) == state_of(writer.population)
    page.wait_for_function("document.getElementById('state').textContent === 'finished'")
    page.evaluate("milo.choose(milo.idOf('i1.1'))")
    page.locator("#details .patch").wait_for()
    page.locator("#details button:text-is('open')").first.click()
    page.locator("#details tr.trace").wait_for()
    assert watched.faults == []
    assert all(request.startswith(url) for request in watched.requests)


def test_a_page_that_is_opened_before_the_first_record_takes_the_run_up(
    watched: Any, tmp_path: Path
) -> None:
    """Who starts a run and its page together points at an empty lane, and zooms it, first."""
    writer = RunWriter(tmp_path / "run")
    server = PageServer(LiveFilm(tmp_path / "run", lambda: None, lambda: 0.0))
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        page = watched.open(server.url)
        page.hover("#lanes")
        page.keyboard.press("f")
        page.keyboard.press("+")
        writer.write(synthetic(10))
        total = len(records_of(writer.store.path))
        page.wait_for_function("n => milo.reel.length === n", arg=total)
        assert page.evaluate("Number.isFinite(milo.lanes.column)")
        assert shown(page, total) == state_of(writer.population)
        assert watched.faults == []
    finally:
        server.stop()
        thread.join()
        writer.close()


# --- for everybody -------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_no_serious_fault(browser: Any, small: Path, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.base")
    script = Path(axe.__file__).parent / "axe.min.js"
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto(page_of(small))
    page.wait_for_selector("html[data-ready]")
    page.evaluate(script.read_text())
    found = [page.evaluate("axe.run()")]
    page.evaluate("milo.choose(milo.idOf('i1.1'))")
    page.locator("#details .patch").wait_for()
    page.locator("#details button:text-is('open')").first.click()
    page.locator("#details tr.trace").wait_for()
    found.append(page.evaluate("axe.run()"))
    faults = {
        (fault["id"], node["target"][0])
        for result in found
        for fault in result["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    }
    context.close()
    assert faults == set()


@pytest.mark.parametrize("width", [360, 390, 768])
def test_nothing_is_wider_than_a_small_screen(browser: Any, small: Path, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto(page_of(small))
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("milo.choose(milo.idOf('i1.1'))")
    page.locator("#details .patch").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_the_scripts_use_no_remote_address() -> None:
    folder = Path(__file__).parents[2] / "milo/views/page"
    for source in folder.iterdir():
        assert not re.search(r"https?://", source.read_text()), source.name
