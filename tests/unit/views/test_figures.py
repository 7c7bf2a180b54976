"""Figures and tables for a paper: the numbers that are drawn, and the files that are written."""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from milo.core.errors import ConfigError
from milo.core.events import RunResumed
from milo.core.fitness import Interval
from milo.views.board import Board, BoardLine, board_csv, board_latex, board_markdown
from milo.views.figures.board_figures import by_method, half_width, staircase
from milo.views.figures.curves import Line, line_of, mean_line, panels, value_at
from milo.views.figures.interventions import stall_steps
from milo.views.figures.style import colours, ordered
from milo.views.figures.writing import Paper, write_paper
from milo.views.history import History, history_of


def line(name: str, runs: int, rate: float, half: float = 0.05, **more: Any) -> BoardLine:
    interval = Interval(rate, rate - half, rate + half)
    figures = {"coverage": 1.0, "tokens": 1234.5, "latency_s": 1.5, "dollars": None} | more
    return BoardLine(
        name=name, runs=runs, k=2, reward=interval, resolved=interval, pass_at_k=rate,
        pass_hat_k=rate, **figures,
    )  # fmt: skip


BOARD = Board(
    split="test",
    tasks=20,
    baseline="seed b",
    lines=(
        line("milo", 3, 0.75, searched_attempts=600.0, searched_tokens=1.2e6),
        line("a", 3, 0.6, dollars=0.25),
        line("seed b", 0, 0.5, half=math.inf),
        line("seed c", 0, 0.4),
        line("best_of_n", 3, 0.55),
    ),
    notes=("the runs have different models: x_1, y",),
)


def history(story: Any, run: str = "runs/demo", method: str = "milo") -> History:
    plan = {"seed": 4, "strategy": {"name": method, "patience": 3}}
    return history_of(story.records, run, plan)


# --- tables --------------------------------------------------------------------------------------


def test_the_csv_holds_plain_numbers_and_leaves_unknown_ones_empty() -> None:
    rows = list(csv.DictReader(io.StringIO(board_csv(BOARD))))
    assert [row["name"] for row in rows] == [one.name for one in BOARD.lines]
    assert [row["kind"] for row in rows] == ["method", "method", "seed", "seed", "method"]
    assert float(rows[0]["pr"]) == 0.75 and float(rows[0]["rr_half_width"]) == pytest.approx(0.05)
    assert rows[0]["dollars_per_attempt"] == "" and float(rows[1]["dollars_per_attempt"]) == 0.25
    assert rows[2]["pr_half_width"] == "", "an infinite interval is not a number"
    assert float(rows[0]["search_tokens"]) == 1.2e6 and rows[3]["search_tokens"] == ""


def test_markdown_and_latex_tell_the_same_figures_with_their_intervals() -> None:
    markdown, latex = board_markdown(BOARD), board_latex(BOARD)
    assert "| milo | 3 | 2 | 75.0 ± 5.0 |" in markdown
    assert "seed b (baseline)" in markdown and "50.0 ± ?" in markdown
    assert "milo & 3 & 2 & 75.0 $\\pm$ 5.0 &" in latex
    assert latex.count("\\\\") == 1 + len(BOARD.lines), "a row each, and the head"
    assert "x_1, y" in markdown


def test_a_name_can_not_break_out_of_a_latex_table() -> None:
    evil = Board(split="test", tasks=1, lines=(line("50%_&$\\input{x}#~^", 1, 0.5),))
    row = next(r for r in board_latex(evil).splitlines() if r.startswith("50"))
    assert row.startswith("50\\%\\_\\&\\$\\textbackslash{}input\\{x\\}\\#")
    assert row.count(" & ") == 10


# --- what is drawn -------------------------------------------------------------------------------


def test_ablations_come_by_their_letter_and_seeds_before_all() -> None:
    names = [one.name for one in by_method(BOARD)]
    assert names == ["seed b", "seed c", "a", "milo", "best_of_n"]
    assert ordered(["milo", "zeta", "c", "a", "alpha"]) == ("a", "c", "milo", "alpha", "zeta")
    assert len(set(colours(["a", "b", "c", "d", "e"]).values())) == 5
    assert half_width(BOARD.lines[2].reward) == 0.0


def test_the_front_of_a_scatter_only_climbs() -> None:
    points = [(5.0, 0.5), (1.0, 0.2), (2.0, 0.2), (3.0, 0.4), (4.0, 0.3), (5.0, 0.6)]
    assert staircase(points) == [(1.0, 0.2), (3.0, 0.4), (5.0, 0.6)]


def test_a_curve_is_the_best_validation_so_far_against_attempts(make_story: Any) -> None:
    found = history(make_story("finished"))
    line = line_of(found)
    assert list(line.x) == sorted(line.x) and list(line.y) == sorted(line.y)
    assert line.y[-1] == pytest.approx(0.8), "the grafted winner's"
    assert found.baseline == pytest.approx(0.3), "the best seed's"
    assert found.best[-1].attempts > found.best[0].attempts > 0
    assert found.best[-1].tokens > 100


def test_the_mean_of_curves_carries_each_forward() -> None:
    first, second = Line((10, 30), (0.2, 0.6)), Line((20, 50), (0.4, 0.8))
    assert value_at(first, 9) is None
    assert value_at(first, 29.9) == 0.2 and value_at(first, 99) == 0.6
    mean = mean_line([first, second, Line((), ())])
    assert mean.x == (20, 30, 50)
    assert mean.y == pytest.approx((0.3, 0.5, 0.7))
    assert mean_line([]) == Line((), ())
    assert panels(1) == (1, 1) and panels(5) == (2, 3)


def test_a_history_tells_stalls_answers_and_where_moves_took_effect(make_story: Any) -> None:
    story = make_story("finished")
    found = history(story)
    assert [strip.island for strip in found.strips] == ["i1", "i2", "i3", "i4"]
    second, newest = found.strips[1], found.strips[3]
    assert [(stand.round, stand.stall) for stand in second.stands] == [(0, 0), (1, 3), (2, 0)]
    assert len(second.admitted) == 1 and newest.source == "i1"
    assert found.strips[0].closed is not None and newest.closed is None
    assert [one.diagnosis for one in found.interventions] == [
        "exhausted lineage",
        "dry mutator",
        "whole-population plateau",
    ]
    assert [(step.move.kind, step.island, step.origin) for step in found.steps] == [
        ("graft", "i2", "i1"),
        ("reassign", "i3", ""),
        ("speciate", "i1", "i4"),
        ("curriculum", "i4", ""),
    ]
    seconds, counts = stall_steps(second, found.seconds)
    assert max(counts) == 3 and seconds[-1] == found.seconds
    assert seconds == sorted(seconds)


def test_time_between_a_stop_and_its_resume_is_not_drawn(make_story: Any) -> None:
    story = make_story("moves")
    before = history(story).seconds
    story.add(RunResumed(), after=50_000.0)
    story.child("i1.3", "i1.2", share=0.7, round_=3)
    assert history(story).seconds < before + 60


# --- files ---------------------------------------------------------------------------------------

needs_matplotlib = pytest.mark.usefixtures("matplotlib")


@pytest.fixture
def matplotlib() -> None:
    pytest.importorskip("matplotlib")


def paper(make_story: Any) -> Paper:
    whole, cut = make_story("finished"), make_story("moves")
    return Paper(
        histories=(history(whole), history(cut, "runs/other", "a")),
        board=BOARD,
        runs=(line("milo (1)", 1, 0.7), line("a (2)", 1, 0.6)),
        method_of={"milo (1)": "milo", "a (2)": "a"},
    )


@needs_matplotlib
def test_every_figure_is_written_as_svg_and_pdf_with_its_words_as_text(
    make_story: Any, tmp_path: Path
) -> None:
    written = write_paper(tmp_path / "out", paper(make_story))
    names = {path.name for path in written}
    figures = ("accuracy-cost", "ablation", "best-so-far", "interventions-demo")
    assert names >= {f"{name}.{kind}" for name in figures for kind in ("svg", "pdf")}
    assert names >= {"leaderboard.csv", "leaderboard.md", "leaderboard.tex"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert all((tmp_path / "out" / f"{n}.pdf").read_bytes().startswith(b"%PDF") for n in figures)
    words = {
        n: re.sub(r"<[^>]+>", " ", (tmp_path / "out" / f"{n}.svg").read_text()) for n in figures
    }
    assert "seed b" in words["accuracy-cost"] and "tokens per attempt" in words["accuracy-cost"]
    assert "best_of_n" in words["ablation"] and "75.0" in words["ablation"]
    assert "best seed" in words["best-so-far"]
    assert "exhausted lineage → graft of i1.1" in words["interventions-demo"]


@needs_matplotlib
def test_the_same_records_give_the_same_bytes(make_story: Any, tmp_path: Path) -> None:
    """Otherwise a paper's repository shows changes where nothing changed."""
    one = Paper(histories=(history(make_story("moves")),))
    first, second = (write_paper(tmp_path / name, one) for name in ("one", "two"))
    assert [path.name for path in first] == [path.name for path in second]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


@needs_matplotlib
def test_a_run_that_has_barely_begun_draws_what_there_is(make_story: Any, tmp_path: Path) -> None:
    empty = Paper(histories=(history(make_story("empty")),))
    assert write_paper(tmp_path, empty) == ()
    seeds = Paper(histories=(history(make_story("seeds")),))
    assert {path.name for path in write_paper(tmp_path, seeds)} == {
        "best-so-far.svg",
        "best-so-far.pdf",
    }


@needs_matplotlib
def test_a_name_with_dollar_signs_is_drawn_as_it_is(tmp_path: Path) -> None:
    """Between two of them a plotting library looks for a formula, and fails at what is none."""
    odd = replace(BOARD, lines=(line("at $0_{ or $1", 1, 0.5), line("seed b", 0, 0.4)))
    write_paper(tmp_path, Paper(histories=(), board=odd))
    assert "at $0_{ or $1" in (tmp_path / "ablation.svg").read_text()


def test_without_matplotlib_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match="pip install 'milo-harness\\[figures\\]'"):
        write_paper(tmp_path / "out", Paper(histories=()))
    assert not (tmp_path / "out").exists()
