"""`milo run -m`: every combination of the swept values, one run after another.

The jobs share nothing but the terminal. A job that fails is named at once and the others go on; a
directory that is given again goes on where it stopped: finished jobs are skipped, stopped ones
resumed.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from milo.app.asking import ask
from milo.app.config import compose, known_keys, require_budget
from milo.app.overrides import SweepJob, canonical, expand
from milo.app.pricing import price_book, require_prices
from milo.app.run_progress import RunProgress
from milo.core.errors import ConfigError, MiloError, RunError
from milo.core.plan import RunPlan

if TYPE_CHECKING:
    from milo.app.cli import Launcher

MANIFEST = "multirun.json"
INTERRUPTED = 130


class Ending(StrEnum):
    """How a job of a multirun ended."""

    DONE = "done"
    FAILED = "failed"
    EARLIER = "finished before"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobResult:
    """One line of the summary; `why` is empty for a job that is done."""

    name: str
    ending: Ending
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Multirun:
    """Runs the jobs of a sweep with the given launcher. Not for concurrent use."""

    launcher: Launcher
    progress_of: Callable[[Path], RunProgress]

    def run(
        self, words: Sequence[str], folder: Path, *, terminal: Callable[[str], str] | None
    ) -> int:
        """Exit code 0 if every job is done, 1 otherwise.

        Every job's configuration is checked before the first one starts. Raises `ConfigError` or
        `RunError` for input that no job can be made of.
        """
        prepared = prepare(words, folder, terminal=terminal)
        results = [self._one(job, plan, len(prepared)) for job, plan in prepared]
        print(summary(results, folder), flush=True)
        return 1 if any(r.ending is Ending.FAILED for r in results) else 0

    def _one(self, job: SweepJob, plan: RunPlan, total: int) -> JobResult:
        print(f"job {job.name} ({total} in all)", flush=True)
        result = self._attempt(job, plan)
        if result.ending is Ending.FAILED:
            print(f"error: job {job.name}: {result.why}", file=sys.stderr, flush=True)
        return result

    def _attempt(self, job: SweepJob, plan: RunPlan) -> JobResult:
        """Run one job to its result. The boundary behind which a job's faults stay."""
        try:
            return self._result(job, plan)
        except MiloError as error:
            return JobResult(name=job.name, ending=Ending.FAILED, why=" ".join(str(error).split()))
        except Exception as error:  # the other jobs go on
            traceback.print_exc()
            why = f"{type(error).__name__}: {error}"
            return JobResult(name=job.name, ending=Ending.FAILED, why=why)

    def _result(self, job: SweepJob, plan: RunPlan) -> JobResult:
        path = Path(plan.run)
        state = self.progress_of(path)
        if state is RunProgress.FINISHED:
            print("  finished before", flush=True)
            return JobResult(name=job.name, ending=Ending.EARLIER)
        if state is RunProgress.STOPPED:
            code = self.launcher.resume(path, allow=())
        else:
            code = self.launcher.launch(plan)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        if code:
            return JobResult(name=job.name, ending=Ending.FAILED, why=f"exit code {code}")
        return JobResult(name=job.name, ending=Ending.DONE)


def prepare(
    words: Sequence[str], folder: Path, *, terminal: Callable[[str], str] | None
) -> tuple[tuple[SweepJob, RunPlan], ...]:
    """The jobs and their checked plans; the folder then holds the words that made it."""
    if any(word.startswith("run=") for word in words):
        raise ConfigError("run", "no value beside -m, where each job has its own", "one")
    words = recorded(folder, words)
    jobs = expand(words, known_keys())
    plans = [_plan_of(job, folder) for job in jobs]
    if terminal and not any(plan.budget.is_bounded for plan in plans):
        words = (*(w for w in words if canonical(w.partition("=")[0]) != "budget"), ask(terminal))
        jobs = expand(words, known_keys())
        plans = [_plan_of(job, folder) for job in jobs]
    for plan in plans:
        require_budget(plan)
        require_prices(plan, price_book(plan))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).write_text(json.dumps({"overrides": list(words)}) + "\n")
    return tuple(zip(jobs, plans, strict=True))


def recorded(folder: Path, words: Sequence[str]) -> tuple[str, ...]:
    """The words of this multirun: those given, or those that its directory was begun with.

    Raises `RunError` where both are there and differ, or the directory is something else.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        if folder.is_dir() and any(folder.iterdir()):
            raise RunError(f"multirun directory {folder}", f"none, or one with {MANIFEST}", "one")
        return tuple(words)
    before = tuple(json.loads(manifest.read_text())["overrides"])
    if words and tuple(words) != before:
        raise RunError(f"multirun {folder}", f"the words {' '.join(before)}", " ".join(words))
    return before


def summary(results: Sequence[JobResult], folder: Path) -> str:
    """The table at the end."""
    width = max((len(result.name) for result in results), default=0)
    lines = [f"{r.name:<{width}}  {r.ending}{': ' + r.why if r.why else ''}" for r in results]
    failed = sum(r.ending is Ending.FAILED for r in results)
    return "\n".join([f"multirun {folder}: {len(results)} jobs, {failed} failed", *lines])


def _plan_of(job: SweepJob, folder: Path) -> RunPlan:
    try:
        plan = compose(job.overrides)
        # One group for all jobs, so that their curves stand in one chart.
        tracking = replace(plan.tracking, group=plan.tracking.group or folder.name)
        return replace(plan, run=str(folder / job.name), tracking=tracking)
    except ConfigError as error:
        raise ConfigError(f"job {job.name}: {error.thing}", error.expected, error.found) from error
