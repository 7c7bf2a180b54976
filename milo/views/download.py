"""A progress bar for downloads, as the callback that a fetcher of weights reports to."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

STEP = 0.25


class DownloadBar:
    """Called with (bytes done, bytes in all, what); one bar per `what`, closed by `close`.

    Without a terminal each quarter gets a plain line instead. A total of 0 means unknown.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tasks: dict[str, TaskID] = {}
        self._drawn: dict[str, int] = {}
        self._said: dict[str, float] = {}
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            auto_refresh=False,
        )

    def __call__(self, done_bytes: int, total_bytes: int, what: str) -> None:
        """Show how far `what` is."""
        if self._console.is_terminal:
            self._draw(done_bytes, total_bytes, what)
        else:
            self._say(done_bytes, total_bytes, what)

    def __enter__(self) -> DownloadBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the terminal back; safe to call twice."""
        if self._tasks:
            self._bars.stop()

    def _draw(self, done: int, total: int, what: str) -> None:
        if not self._tasks:
            self._bars.start()
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total or None)
        # A fetcher reports every chunk; drawing each of them would cost more than fetching it.
        elif done < total and done < self._drawn[what] + (total / 200 or 1e6):
            return
        self._drawn[what] = done
        self._bars.update(self._tasks[what], completed=done, total=total or None)
        self._bars.refresh()

    def _say(self, done: int, total: int, what: str) -> None:
        share = done / total if total else 0.0
        if what in self._said and share < self._said[what] + STEP:
            return
        self._said[what] = share - share % STEP
        amount = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else f"{done / 1e6:.0f} MB"
        self._console.print(f"{what}: {amount}", highlight=False, markup=False, soft_wrap=True)


def progress_bar(console: Console) -> DownloadBar:
    """A bar on this console; use it as a context manager around the download."""
    return DownloadBar(console)
