"""Figures that are worked out once for each record."""

from __future__ import annotations

from milo.runtime.remembered import Remembered


def test_a_figure_is_worked_out_once_for_each_record_also_where_there_is_none() -> None:
    asked: list[int] = []

    def work() -> int | None:
        asked.append(len(asked))
        return None if len(asked) == 1 else 7

    figure = Remembered(work)
    assert [figure.at(seq) for seq in (-1, -1, 0, 0)] == [None, None, 7, 7]
    assert len(asked) == 2
