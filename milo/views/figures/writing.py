"""Writes what a paper needs of some runs: the leaderboard as tables, and every figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from milo.views.board import Board, BoardLine, board_csv, board_latex, board_markdown
from milo.views.figures.board_figures import draw_bars, draw_scatter
from milo.views.figures.curves import draw_curves, panels
from milo.views.figures.interventions import draw_interventions, size_of
from milo.views.figures.style import PAGE, need_matplotlib, save
from milo.views.history import History


@dataclass(frozen=True, kw_only=True, slots=True)
class Paper:
    """The data of all figures. `board` is None where no run has a scored winner; `runs` are the
    rows of single runs, and `method_of` names the method of each."""

    histories: tuple[History, ...]
    board: Board | None = None
    runs: tuple[BoardLine, ...] = ()
    method_of: Mapping[str, str] | None = None


def write_paper(folder: Path, paper: Paper) -> tuple[Path, ...]:
    """Write tables and figures into a folder, over those of an earlier time; the files in order.

    Raises `ConfigError` where matplotlib is missing, before anything is written.
    """
    need_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    return (*_tables(folder, paper.board), *_figures(folder, paper))


def _tables(folder: Path, board: Board | None) -> Iterator[Path]:
    if board is None:
        return
    kinds = {"csv": board_csv, "md": board_markdown, "tex": board_latex}
    for kind, text_of in kinds.items():
        path = folder / f"leaderboard.{kind}"
        path.write_text(text_of(board), encoding="utf-8")
        yield path


def _figures(folder: Path, paper: Paper) -> Iterator[Path]:
    board = paper.board
    if board is not None:
        of = paper.method_of or {}
        yield from save(
            folder, "accuracy-cost", lambda f: draw_scatter(f, board, paper.runs, of), (PAGE, 2.7)
        )
        yield from save(folder, "ablation", lambda f: draw_bars(f, board), (PAGE, 2.6))
    searched = [history for history in paper.histories if len(history.best) > 1]
    if searched:
        rows, columns = panels(len({history.method for history in searched}))
        size = (min(PAGE, 0.4 + 2.3 * max(1.4, columns)), 0.6 + 1.7 * rows)
        yield from save(folder, "best-so-far", lambda f: draw_curves(f, searched), size)
    for history, name in zip(paper.histories, _names(paper.histories), strict=True):
        if history.interventions:
            draw = partial(draw_interventions, history=history)
            yield from save(folder, name, draw, size_of(history))


def _names(histories: Sequence[History]) -> list[str]:
    """File names of the figures of single runs: by the run's name where there are several."""
    if len(histories) == 1:
        return ["interventions"]
    last = [history.run.rstrip("/").rpartition("/")[2] for history in histories]
    unique = [name if last.count(name) == 1 else f"{n}-{name}" for n, name in enumerate(last)]
    return [f"interventions-{name}" for name in unique]
