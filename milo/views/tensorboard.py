"""Follows a run into TensorBoard event files, through the same port as wandb."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from milo.core.errors import ConfigError
from milo.views.findings import COLUMNS, Findings
from milo.views.rendering import markdown_table
from milo.views.sections import Column, TableOf
from milo.views.text import one_line

FOLDER = "tensorboard"
MOST_ROWS = 500
"""Candidates of the table: TensorBoard lays out each text whole."""


class TensorboardTracker:
    """One folder of event files inside the run directory, written by its one owner.

    What a killed process had written may lack its tail, so the folder is made anew from the
    journal whenever a run goes on; its steps are the journal's own and never repeat.
    """

    def __init__(self, directory: Path) -> None:
        """Open; raises `ConfigError` where tensorboardX is missing."""
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise ConfigError(
                "tracking.tensorboard=true",
                "tensorboardX to be installed (pip install 'milo-harness[tensorboard]')",
                "none",
            ) from None
        self.fault = ""
        self._last = -1
        folder = directory / FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        self._writer = SummaryWriter(logdir=str(folder), flush_secs=5)

    @property
    def last_step(self) -> int:
        """The highest step written; -1 before the first."""
        return self._last

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point; a step that is already held is ignored."""
        if step <= self._last or self.fault:
            return
        try:
            for name, value in values.items():
                self._writer.add_scalar(name, value, global_step=step)
        except OSError as error:
            self.fault = f"TensorBoard stopped following the run: {error}"
        else:
            self._last = step

    def publish(self, findings: Callable[[], Findings]) -> None:
        """The newest candidates and the best harness's lineage, as text."""
        if self.fault:
            return
        found = findings()
        columns = tuple(Column(name) for name in COLUMNS)
        rows = tuple(
            tuple("" if cell is None else one_line(str(cell)) for cell in row)
            for row in found.rows[-MOST_ROWS:]
        )
        texts = {"candidates": "\n".join(markdown_table(TableOf(columns=columns, rows=rows)))}
        if found.lineage:
            lineage = json.dumps(found.lineage, indent=1, sort_keys=True)
            texts["best harness"] = f"```json\n{lineage}\n```"
        try:
            for name, words in texts.items():
                self._writer.add_text(name, words, global_step=max(0, self._last))
        except OSError as error:
            self.fault = f"TensorBoard did not take the candidates: {error}"

    def finish(self, summary: Mapping[str, object]) -> None:
        """Write the summary as text and close."""
        try:
            words = "\n\n".join(f"{name}: {value}" for name, value in summary.items())
            self._writer.add_text("summary", words, global_step=max(0, self._last))
            self._writer.close()
        except OSError as error:
            self.fault = f"TensorBoard did not close: {error}"
