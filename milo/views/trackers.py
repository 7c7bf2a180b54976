"""Trackers follow a run from its records: wandb where it is installed, nothing elsewhere."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from milo.core.errors import ConfigError
from milo.core.events import Record
from milo.core.plan import TrackingPlan
from milo.core.tree import FileTree
from milo.views.cost_note import CostNote
from milo.views.findings import COLUMNS, Findings
from milo.views.points import PointFold
from milo.views.tensorboard import TensorboardTracker
from milo.views.text import json_ready

BEST = "best-harness"
"""The folder of the best harness, beside wandb's own."""
MODES = ("auto", "offline", "online", "off")
_SECRET_KEY = re.compile(
    r"(^|_)(key|apikey|secret|password|passwd|credentials?|authorization|auth|token)$", re.I
)
_URL_SECRETS = re.compile(r"(?<=://)[^/@\s]+@|(?<=[?#]).*")


class ResumableTracker(Protocol):
    """A `core.ports.Tracker` that knows the last step it holds; lower steps are ignored.

    `fault` says why the run is no longer followed, "" while it is or where nobody asked for it.
    """

    @property
    def fault(self) -> str:
        """Why the run is no longer followed, "" while it is."""
        ...

    @property
    def last_step(self) -> int:
        """The highest step that is already logged, -1 where none is."""
        ...

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point."""
        ...

    def publish(self, findings: Callable[[], Findings]) -> None:
        """Show the candidates and keep the best harness; whoever shows nothing asks for nothing."""
        ...

    def finish(self, summary: Mapping[str, object]) -> None:
        """Close, with the final figures."""
        ...


class NullTracker:
    """Follows nothing; `fault` says why, where something was meant to."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    @property
    def last_step(self) -> int:
        """Nothing is ever logged."""
        return -1

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Drop the point."""

    def publish(self, findings: Callable[[], Findings]) -> None:
        """Ask for nothing."""

    def finish(self, summary: Mapping[str, object]) -> None:
        """Drop the summary."""


class WandbTracker:
    """One wandb run, written by its one owner; nothing but points, plan and summary is sent.

    wandb's own counter starts at 0 again when an offline run is resumed, and what a killed
    process had handed over may or may not lie on disk. So an offline history is never trusted
    after a stop: it is dropped and written anew from the journal, which costs a second per ten
    thousand points. An online run is asked for its last step instead.

    Once the run is open, a failing wandb never ends the search: `fault` holds the reason.
    """

    def __init__(
        self,
        plan: TrackingPlan,
        name: str,
        directory: Path,
        config: Mapping[str, object],
        created: float,
    ) -> None:
        """Open the run; raises `ConfigError` where wandb refuses (not logged in, no network)."""
        import wandb

        self.fault = ""
        self.run_id = run_id(name, created)
        self._name = name
        self._faults = (wandb.Error, OSError)
        offline = plan.wandb != "online"
        directory.mkdir(parents=True, exist_ok=True)
        if offline:
            _drop_offline(directory, self.run_id)
        try:
            self._run: Any = wandb.init(
                project=plan.project,
                group=plan.group or name,
                name=name,
                job_type=_method(config),
                id=self.run_id,
                resume=None if offline else "allow",
                dir=str(directory),
                config=public_config(config),
                reinit="create_new",
                settings=_settings(offline),
            )
            _chart_over_attempts(self._run)
        except self._faults as error:
            raise ConfigError(
                f"tracking.wandb={plan.wandb}", "a wandb that opens a run", str(error)
            ) from error
        self._last = self._run.step - 1 if self._run.resumed else -1
        self._place = directory / "wandb" / BEST

    @property
    def last_step(self) -> int:
        """The highest step that this wandb run holds."""
        return self._last

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point; a step that is already held is ignored."""
        if step <= self._last or self.fault:
            return
        try:
            self._run.log(dict(values), step=step, commit=True)
        except self._faults as error:
            self.fault = f"wandb stopped following the run: {error}"
        else:
            self._last = step

    def publish(self, findings: Callable[[], Findings]) -> None:
        """The candidates as a table of the summary, which needs no step; the best harness as an
        artifact with its lineage as metadata."""
        import wandb

        if self.fault:
            return
        found = findings()
        try:
            table = wandb.Table(columns=list(COLUMNS), data=[list(row) for row in found.rows])
            self._run.summary["candidates"] = table
            if found.tree is not None:
                self._run.log_artifact(self._artifact(found, found.tree), aliases=["best"])
        except (*self._faults, ValueError) as error:
            self.fault = f"wandb did not take the candidates: {error}"

    def _artifact(self, found: Findings, tree: FileTree) -> Any:
        import wandb

        shutil.rmtree(self._place, ignore_errors=True)
        tree.write_to(self._place)
        artifact = wandb.Artifact(
            f"harness-{self.run_id}",
            type="harness",
            description=f"{found.best} of {self._name}",
            metadata=dict(found.lineage or {}),
        )
        # In place: wandb's own copies would lie outside of the run directory.
        artifact.add_dir(str(self._place), policy="immutable", skip_cache=True)
        return artifact

    def finish(self, summary: Mapping[str, object]) -> None:
        """Write the summary and close. wandb's own process may write the tail a moment later; it
        is waited for when this process exits.
        """
        try:
            self._run.summary.update(json_ready(dict(summary)))
            self._run.finish()
        except self._faults as error:
            self.fault = f"wandb did not close: {error}"


class EveryTracker:
    """Several trackers as one; each ignores the steps that it holds already."""

    def __init__(self, *trackers: ResumableTracker) -> None:
        self._trackers = trackers

    @property
    def fault(self) -> str:
        """Why any of them no longer follows, "" while all do."""
        return "; ".join(tracker.fault for tracker in self._trackers if tracker.fault)

    @property
    def last_step(self) -> int:
        """The step up to which all are complete; one that follows nothing does not count."""
        at_work = [t.last_step for t in self._trackers if not isinstance(t, NullTracker)]
        return min(at_work, default=-1)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point for each of them that lacks it."""
        for tracker in self._trackers:
            if step > tracker.last_step:
                tracker.log(step, values)

    def publish(self, findings: Callable[[], Findings]) -> None:
        """The findings, made once, for each of them that shows any."""
        made: list[Findings] = []

        def once() -> Findings:
            if not made:
                made.append(findings())
            return made[0]

        for tracker in self._trackers:
            tracker.publish(once)

    def finish(self, summary: Mapping[str, object]) -> None:
        """Close them all."""
        for tracker in self._trackers:
            tracker.finish(summary)


class Follower:
    """Feeds a tracker from records. Give it the whole journal: it skips what is already logged.

    `costs` are noted beside the records; None where a price is unknown, which is no cost of zero.
    Records up to `known` were there before: what they cost is told by the note or by nobody.
    """

    def __init__(
        self, tracker: ResumableTracker, costs: CostNote | None = None, known: int = -1
    ) -> None:
        self._tracker = tracker
        self._costs = costs
        self._known = known
        self._dollars = (costs.at(costs.last) if costs is not None else None) or 0.0
        self._fold = PointFold()

    def spent(self, dollars: float) -> None:
        """What the ledger says now, in all."""
        self._dollars = dollars

    def update(self, records: Sequence[Record]) -> None:
        """Records in journal order, on a resume from the first on."""
        for record in records:
            point = self._fold.apply(record)
            if point is not None and point.step > self._tracker.last_step:
                self._tracker.log(point.step, {**point.values, **self._cost(point.step)})

    def _cost(self, step: int) -> dict[str, float]:
        if self._costs is None:
            return {}
        if step > max(self._costs.last, self._known):
            self._costs.note(step, self._dollars)
        dollars = self._costs.at(step)
        return {} if dollars is None else {"spent/dollars": dollars}


def choose_tracker(
    plan: TrackingPlan,
    name: str,
    directory: Path,
    config: Mapping[str, object],
    installed: Callable[[], bool] | None = None,
    *,
    created: float = 0.0,
) -> ResumableTracker:
    """The tracker that the plan asks for; ``auto`` is offline wandb where it is installed.

    `name` is the run's name, `created` when it was made (seconds since the epoch), `directory` the
    folder inside the run directory that wandb may write to, `config` the plan as data. Raises
    `ConfigError` for an unknown word, and where wandb is asked for and can't be had; ``auto`` goes
    on without it and says so in `fault`.
    """
    if plan.wandb not in MODES:
        raise ConfigError("tracking.wandb", f"one of {', '.join(MODES)}", repr(plan.wandb))
    first = _choose_wandb(
        plan,
        (installed or wandb_is_installed)(),
        lambda: WandbTracker(plan, name, directory, config, created),
    )
    return EveryTracker(first, TensorboardTracker(directory)) if plan.tensorboard else first


def _choose_wandb(
    plan: TrackingPlan, is_installed: bool, made: Callable[[], WandbTracker]
) -> ResumableTracker:
    if plan.wandb == "off":
        return NullTracker()
    if not is_installed:
        if plan.wandb == "auto":
            return NullTracker()
        raise ConfigError(
            f"tracking.wandb={plan.wandb}", "wandb to be installed (pip install wandb)", "none"
        )
    try:
        return made()
    except ConfigError as error:
        if plan.wandb == "auto":
            return NullTracker(str(error))
        raise


def wandb_is_installed() -> bool:
    """Whether wandb could be imported; it isn't imported."""
    return importlib.util.find_spec("wandb") is not None


def run_id(name: str, created: float) -> str:
    """wandb's id of a run, the same at every resume: a hash of the run's name and of the moment it
    was made, since the jobs of two multiruns have the same names."""
    return hashlib.sha256(f"{name} {created!r}".encode()).hexdigest()[:16]


def public_config(data: Mapping[str, object]) -> dict[str, object]:
    """The plan without anything that looks like a secret: keys by name, URLs without user or
    query."""
    return {key: _public(value) for key, value in data.items() if not _SECRET_KEY.search(str(key))}


def _public(value: object) -> object:
    if isinstance(value, Mapping):
        return public_config(value)
    if isinstance(value, list | tuple):
        return [_public(item) for item in value]
    if isinstance(value, str) and "://" in value:
        return _URL_SECRETS.sub("", value)
    return json_ready(value)


def _chart_over_attempts(run: Any) -> None:
    """Runs of a group differ in their records' numbers, not in what an attempt is."""
    run.define_metric("spent/attempts")
    for metrics in ("population/*", "island/*", "orchestrator/*", "run/*"):
        run.define_metric(metrics, step_metric="spent/attempts")


def _method(config: Mapping[str, object]) -> str:
    """The strategy's name, by which the runs of a group are told apart."""
    strategy = config.get("strategy")
    return str(strategy.get("name", "")) if isinstance(strategy, Mapping) else ""


def _drop_offline(directory: Path, run: str) -> None:
    """Remove what earlier processes of this very run wrote; all of it comes from the journal.

    Renaming first makes it one step: a wandb process that outlived its run may still be writing.
    """
    for old in (directory / "wandb").glob(f"offline-run-*-{run}"):
        dropped = old.with_name(f"dropped-{old.name}")
        shutil.rmtree(dropped, ignore_errors=True)
        old.rename(dropped)
        shutil.rmtree(dropped, ignore_errors=True)


def _settings(offline: bool) -> Any:
    """wandb kept quiet, and kept from looking at the machine, the repository and the terminal."""
    import wandb

    return wandb.Settings(
        mode="offline" if offline else "online",
        silent=True,
        quiet=True,
        console="off",
        disable_git=True,
        disable_code=True,
        save_code=False,
        disable_job_creation=True,
        init_timeout=30.0,
        login_timeout=10.0,
        x_disable_stats=True,
        x_disable_meta=True,
        x_disable_machine_info=True,
    )
