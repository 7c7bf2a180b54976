"""The live terminal view: a header, one row per island, and the last word of the orchestrator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from milo.core.budget import Budget
from milo.core.events import CandidateJudged, CandidateProposed, Record
from milo.core.population import Population
from milo.views import text
from milo.views.lines import is_notable, sentence
from milo.views.picture import (
    IslandRow,
    draw_header,
    draw_islands,
    draw_limits,
    draw_note,
    draw_trouble,
    draw_work,
    two_lines,
)
from milo.views.plain import PlainView
from milo.views.view import Pace, Progress, View


def choose_view(stream: TextIO, patience: int) -> View:
    """The live view on a terminal that can redraw, plain lines elsewhere."""
    console = Console(file=stream)
    can_redraw = console.is_terminal and not console.is_dumb_terminal
    return LiveView(console, patience) if can_redraw else PlainView(stream)


class LiveView:
    """Redraws on calls of its one owner; it has no thread of its own.

    `patience` is the number of rounds without improvement after which an island is stalled.
    """

    def __init__(self, console: Console, patience: int) -> None:
        self._console = console
        self._patience = patience
        self._population = Population()
        self._verdicts: dict[str, CandidateJudged] = {}
        self._newest: dict[str, CandidateProposed] = {}
        self._snapshot = Progress(budget=Budget())
        self._pace = Pace()
        self._left: dict[str, float | None] = {}
        self._title = ""
        self._live = Live(console=console, auto_refresh=False)
        self._width = console.width

    def start(self, title: str, past: Sequence[Record] = ()) -> None:
        """Take over the bottom of the terminal."""
        self._title = title
        for record in past:
            self._fold(record)
        self._live.start()
        self._redraw()

    def update(self, records: Sequence[Record]) -> None:
        """Fold records in; the notable ones also get two lines at most above the table."""
        for record in records:
            self._fold(record)
            if is_notable(record.event):
                line = text.shorten(f"· {sentence(record.event)}", two_lines(self._width))
                self._console.print(Text(line, style="dim"))
        self._redraw()

    def progress(self, snapshot: Progress) -> None:
        """Show what is going on now."""
        self._snapshot = snapshot
        self._left = {
            island: self._pace.left(island, work, snapshot.seconds)
            for island, work in snapshot.islands.items()
        }
        self._redraw()

    def message(self, words: str) -> None:
        """A line above the table."""
        self._console.print(Text(text.one_line(words)))

    def stop(self) -> None:
        """Leave the last picture standing and give the terminal back."""
        if self._live.is_started:
            self._redraw()
            self._live.stop()

    def render(self, width: int) -> RenderableType:
        """The whole picture for a terminal of `width` columns."""
        snapshot, rounds = self._snapshot, self._rounds()
        parts: list[RenderableType] = [
            draw_header(self._title, snapshot, rounds),
            draw_limits(snapshot, rounds, width),
        ]
        if self._population.topology.islands:
            parts.append(draw_islands(self._rows(), self._patience, width))
        if snapshot.whole is not None:
            parts.append(draw_work(snapshot.whole, width))
        parts += [draw_trouble(trouble, width) for trouble in snapshot.troubles]
        if self._population.consultations:
            parts.append(draw_note(self._population.consultations[-1], width))
        return Group(*parts)

    def _rows(self) -> tuple[IslandRow, ...]:
        return tuple(
            IslandRow(
                state=state,
                work=self._snapshot.islands.get(island),
                newest=self._newest.get(island),
                verdict=self._verdicts.get(island),
                left=self._left.get(island),
            )
            for island, state in self._population.topology.islands.items()
        )

    def _rounds(self) -> float:
        """Rounds done, as the mean over the islands; round 0 is the scoring of the seed."""
        done = [max(0, state.round) for state in self._population.topology.islands.values()]
        return sum(done) / len(done) if done else 0.0

    def _fold(self, record: Record) -> None:
        event = record.event
        self._population.apply(event)
        if isinstance(event, CandidateJudged):
            self._verdicts[event.island] = event
        elif isinstance(event, CandidateProposed):
            self._newest[event.island] = event

    def _redraw(self) -> None:
        if not self._live.is_started:
            return
        if self._console.width != self._width:
            self._begin_anew()
        self._live.update(self.render(self._width), refresh=True)

    def _begin_anew(self) -> None:
        """Most terminals wrap what stands in a window that got narrower, so that nobody can tell
        where the old picture begins: clear the window and draw below an empty one."""
        self._live.stop()
        self._console.clear()
        self._width = self._console.width
        self._live = Live(console=self._console, auto_refresh=False)
        self._live.start()
