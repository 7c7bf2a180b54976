"""`milo report RUN… --figures`: the leaderboard and the curves of runs, as files for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from milo.app.protocol_tools import entries_of, paths_of
from milo.core.errors import RunError
from milo.protocols.entries import Entry
from milo.protocols.leaderboard import leaderboard
from milo.protocols.standing import Leaderboard, Row
from milo.store import RunReader
from milo.views.board import Board, BoardLine
from milo.views.figures.writing import Paper, write_paper
from milo.views.history import History, history_of


def write_figures(names: Sequence[str], runs_dir: Path, folder: Path) -> str:
    """Write them; what was written, in words. A name may be a run, or a folder of runs.

    Runs may be alive or dead; those without a scored winner have curves but no row. Raises
    `RunError` where the folder is a run or a file.
    """
    if (folder / "run.json").is_file() or folder.is_file():
        raise RunError(f"figures {folder}", "a folder to write to, other than a run's", "this")
    paths = paths_of(names, runs_dir)
    entries, left_out = entries_of(paths)
    paper = Paper(histories=tuple(_history(path) for path in paths))
    if entries:
        paper = _with_board(paper, entries)
    written = write_paper(folder, paper)
    said = [f"{folder} holds {', '.join(sorted(path.name for path in written)) or 'nothing'}"]
    return "\n".join([*said, *(f"not in the leaderboard: {reason}" for reason in left_out)])


def _history(path: Path) -> History:
    with RunReader(path) as reader:
        return history_of(reader.records(), str(path), reader.plan)


def _with_board(paper: Paper, entries: Sequence[Entry]) -> Paper:
    rng = np.random.default_rng(0)
    each = leaderboard(entries, rng, each=True)
    runs = tuple(_line(row) for row in each.rows if row.runs)
    method_of = {row.name: row.name.partition(" (")[0] for row in each.rows}
    return Paper(
        histories=paper.histories,
        board=_board(leaderboard(entries, rng)),
        runs=runs,
        method_of=method_of,
    )


def _board(board: Leaderboard) -> Board:
    return Board(
        split=board.split,
        tasks=board.tasks,
        lines=tuple(_line(row) for row in board.rows),
        baseline=board.baseline,
        notes=board.notes,
    )


def _line(row: Row) -> BoardLine:
    return BoardLine(
        name=row.name,
        runs=row.runs,
        k=row.k,
        reward=row.reward,
        resolved=row.resolved,
        pass_at_k=row.pass_at_k,
        pass_hat_k=row.pass_hat_k,
        coverage=row.coverage,
        tokens=row.figures.tokens,
        latency_s=row.figures.latency_s,
        dollars=row.figures.dollars,
        searched_attempts=row.searched_attempts,
        searched_tokens=row.searched_tokens,
        searched_dollars=row.searched_dollars,
        searched_hours=row.searched_hours,
    )
