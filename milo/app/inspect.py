"""Reading runs for the command line: which one is meant, its status, its report, its harnesses.

Only reads: a run may be alive in another process meanwhile.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from milo.app.convert import nearest
from milo.app.run_progress import RunProgress
from milo.core.attempt import Outcome
from milo.core.errors import MiloError, RunError
from milo.core.events import Record
from milo.core.lineage import Node
from milo.core.population import Population
from milo.store import RunReader, find_run
from milo.views.concluding import build_report
from milo.views.judging_note import judging_words
from milo.views.lost_calls import unrecorded_words, unsettled_of, unsettled_words
from milo.views.progress_file import is_driven, quick_status
from milo.views.report import Place, Report, report_json
from milo.views.status import Status, status_json
from milo.views.status import status_text as status_words
from milo.views.text import json_ready, percent, plural

MULTIRUNS = Path("multirun")
DEPTH = 3
"""How deep below a folder of runs a run may lie (a multirun puts its jobs one deeper)."""


def locate(name: str, runs_dir: Path, multiruns: Path = MULTIRUNS) -> Path:
    """The run directory that a path or a unique name means; raises `RunError`."""
    try:
        return find_run(name, runs_dir)
    except RunError:
        if not multiruns.is_dir():
            raise
        try:
            return find_run(name, multiruns)
        except RunError:
            pass
        raise


def progress_of(path: Path) -> RunProgress:
    """How far a run directory has come; raises `RunError` where it is something else."""
    if not path.exists():
        return RunProgress.ABSENT
    with RunReader(path) as reader:
        return RunProgress.FINISHED if reader.is_finished() else RunProgress.STOPPED


def status(path: Path, now: float) -> Status:
    """The status of a run at `now`, in seconds since the epoch."""
    with RunReader(path) as reader:
        return quick_status(reader, now)


def status_text(path: Path, *, as_json: bool) -> str:
    """What `milo status` prints."""
    found = status(path, time.time())
    if as_json:
        return status_json(found)
    with RunReader(path) as reader:
        more = unrecorded_words(reader.calls, found.spend.values())
    return "\n".join(filter(None, (status_words(found), more)))


class RunRecords:
    """One run as the report reads it (`views.concluding.RunData`)."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self.population = reader.population()

    def records(self) -> Iterable[Record]:
        """The journal, in order."""
        return self._reader.records()

    def outcomes(self) -> Iterable[Outcome]:
        """Every attempt on record, once."""
        return self._reader.attempts.iter()

    def patch(self, candidate: str) -> str:
        """The diff from the first parent; "" where there is none on record."""
        lineage, harnesses = self.population.lineage, self._reader.harnesses
        parents = lineage[candidate].parents if candidate in lineage else ()
        if not parents or not (harnesses.has(candidate) and harnesses.has(parents[0])):
            return ""
        return harnesses.patch(parents[0], candidate)


def report_of(path: Path, notes: Sequence[str] = ()) -> Report:
    """The report of a run, finished or not."""
    with RunReader(path) as reader:
        records, driven = RunRecords(reader), is_driven(reader, time.time())
        books = (unsettled_words(unsettled_of(reader.calls)), judging_words(reader.calls))
        # What a living writer is just writing is not torn.
        torn = () if driven else reader.warnings
        told = (*notes, *torn, *filter(None, books))
        place = _place(reader, records.population, driven=driven)
        report = build_report(records, place, told)
        more = unrecorded_words(reader.calls, report.spending.by_role.values())
    return replace(report, warnings=(*report.warnings, *([more] if more else [])))


def _place(reader: RunReader, population: Population, *, driven: bool) -> Place:
    """Where a run and its winner lie, and the commands that show and export them; `driven` where
    it goes on, so that there is nothing to resume."""
    winner, quoted = population.winner, quote(str(reader.path))
    commands = [
        *([f"milo export {quoted} my-harness"] if winner else []),
        *([f"milo view {quoted}"] if driven else []),
        *([] if driven or population.ended else [f"milo resume {quoted}"]),
        f"git -C {quote(str(reader.path / 'harnesses.git'))} log --graph --oneline --all",
        f"milo report {quoted} --markdown",
    ]
    harness = ""
    if winner and reader.harnesses.has(winner.candidate):
        commit = reader.harnesses.commit(winner.candidate)
        harness = f"{reader.path / 'harnesses.git'} at {commit[:12]}"
    return Place(run=str(reader.path), harness=harness, commands=tuple(commands))


def report_text(path: Path, *, form: str) -> str:
    """What `milo report` prints; `form` is ``text``, ``json`` or ``markdown``."""
    # Imported here: rich takes a tenth of a second, for which `milo status` need not wait.
    from rich.console import Console

    from milo.views.rendering import print_report, report_markdown

    report = report_of(path)
    if form == "json":
        return report_json(report)
    if form == "markdown":
        return report_markdown(report)
    page = Console()
    text = io.StringIO()
    print_report(
        report,
        Console(
            file=text, width=page.width, force_terminal=page.is_terminal, no_color=page.no_color
        ),
    )
    return text.getvalue().rstrip("\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLine:
    """One run of a listing; `fault` says what is wrong with one that can't be read."""

    run: str
    created: float = 0.0
    state: str = ""
    islands: int = 0
    tried: int = 0
    admitted: int = 0
    best_validation: float = 0.0
    winner: str = ""
    fault: str = ""

    @property
    def words(self) -> str:
        """Where the run stands, in one line."""
        if self.fault:
            return self.fault
        won = f", winner {self.winner}" if self.winner else ""
        best = f", best validation {percent(self.best_validation)} %"
        children = f"{self.admitted} of {self.tried} children admitted"
        islands = plural(self.islands, "island")
        return f"{self.state}, {islands}, {children}{best}{won}"


def runs_text(folders: Sequence[Path], *, as_json: bool = False) -> str:
    """One line for each run below the folders, the newest last; what to do where there is none."""
    paths = [path for folder in folders for path in runs_below(folder)]
    lines = sorted((_line(path) for path in paths), key=lambda line: (line.created, line.run))
    if as_json:
        return json.dumps(json_ready(lines), indent=2, sort_keys=True, allow_nan=False)
    if not lines:
        return "no runs here; milo run budget=quick makes one"
    width = max(len(line.run) for line in lines)
    return "\n".join(f"{line.run:<{width}}  {line.words}" for line in lines)


def runs_below(folder: Path) -> tuple[Path, ...]:
    """The run directories below a folder."""
    patterns = ("/".join(["*"] * depth + ["run.json"]) for depth in range(1, DEPTH + 1))
    return tuple(sorted({found.parent for p in patterns for found in folder.glob(p)}))


def _line(path: Path) -> RunLine:
    """Where a run stands; a broken run says so in its place."""
    try:
        with RunReader(path) as reader:
            created = reader.created
        found = status(path, time.time())
    except (MiloError, OSError) as error:  # one that can't be read must hide no other
        return RunLine(run=str(path), fault=" ".join(str(error).split()))
    return RunLine(
        run=str(path),
        created=created,
        state=str(found.state),
        islands=len(found.islands),
        tried=sum(island.tried for island in found.islands),
        admitted=sum(island.admitted for island in found.islands),
        best_validation=max((i.best_validation for i in found.islands), default=0.0),
        winner=found.winner.candidate if found.winner else "",
    )


def export(path: Path, candidate: str, target: Path, *, as_json: bool = False) -> str:
    """Write a candidate (the winner where none is named) to `target`; what was done, in words or
    as data.

    Raises `RunError` for an unknown candidate, a run without a winner, or a target in use.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunError(f"export to {target}", "a directory that is new or empty", "one in use")
    with RunReader(path) as reader:
        name = _candidate(reader, candidate)
        harness = reader.harnesses.get(name)
    harness.tree.write_to(target)
    if as_json:
        data = {
            "run": str(path),
            "candidate": name,
            "harness": harness.digest,
            "directory": str(target),
            "entry": list(harness.manifest.entry),
        }
        return json.dumps(data, indent=2, sort_keys=True)
    entry = " ".join(harness.manifest.entry)
    return f"{name} of {path} is in {target} (entry: {entry})\nsearch on from it: seeds={target}"


def _candidate(reader: RunReader, wanted: str) -> str:
    population = reader.population()
    known = [node.candidate for node in population.lineage]
    if wanted:
        if wanted not in known:
            raise unknown_candidate(wanted, known, reader.path)
        return wanted
    if population.winner is None:
        best = max(population.lineage, key=_validated, default=None)
        hint = f" (name a candidate, such as {best.candidate})" if best else ""
        raise RunError(f"run {reader.path}", f"a winner to export{hint}", "none frozen yet")
    return population.winner.candidate


def unknown_candidate(wanted: str, known: Sequence[str], run: Path) -> RunError:
    """The error to raise, with the nearest name, or with where to look them up."""
    meant = nearest(wanted, known)
    hint = f"such as {meant!r}" if meant else f"as `milo show {quote(str(run))}` lists them"
    return RunError(f"candidate {wanted!r}", f"a candidate of {run}, {hint}", "an unknown one")


def _validated(node: Node) -> float:
    """Mean validation reward, for a hint; -1 where it was never validated."""
    evaluation = node.evaluation("validation")
    rates = [score.reward for score in evaluation.values()]
    return sum(rates) / len(rates) if rates else -1.0
