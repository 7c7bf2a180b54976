"""`milo run` and `milo resume`: checks first, then the run with its view, then the report."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from milo.app import recipes
from milo.app.agents import check_agents
from milo.app.arena import arena_seeds
from milo.app.checks import LOCAL_MODELS, NO_MODEL
from milo.app.compose import AppParts, SystemClock, require_key
from milo.app.config import amend
from milo.app.following import Following
from milo.app.foresight import Foresight, size_of
from milo.app.inspect import locate, report_of
from milo.app.packages import Shelf, check_packages, programs_folder
from milo.app.pricing import AT_RESUME, keep, kept, price_book, require_prices
from milo.app.resuming import changes_of, on_record
from milo.app.suite_tools import left_out_words
from milo.app.weights import own_weights, weights_cache
from milo.core.budget import Budget, Spend
from milo.core.errors import ClusterError, DiskFull, HarnessError, ModelError, RunError
from milo.core.events import Record
from milo.core.harness import Harness
from milo.core.packages import Packages
from milo.core.plan import RunPlan
from milo.core.population import Population
from milo.core.task import Suite
from milo.gateway.weights import built_in, cached, fetch
from milo.runtime.driver import Driver, Ending, Watcher
from milo.runtime.parts import Doing as IslandDoing
from milo.runtime.parts import Load
from milo.runtime.ray_stage import RayStage
from milo.runtime.seeding import Seed
from milo.runtime.wallclock import WallClock
from milo.search.estimate import estimate
from milo.store.codec import encode_plan
from milo.store.reader import RunReader
from milo.store.run_store import RunStore
from milo.views.download import progress_bar
from milo.views.live import choose_view
from milo.views.progress_file import NotedView, standing
from milo.views.rendering import print_report
from milo.views.view import Progress, View, Work

OK, FAILED, INTERRUPTED = 0, 1, 130
PASSING = (ModelError, DiskFull, ClusterError)
"""What ends a run for now: it can be gone on with once that is over."""
BUILT_IN_SEEDS = Path(__file__).parents[1] / "seeds"


def launch(plan: RunPlan) -> int:
    """Run a plan from its start; the exit code. Everything is checked before anything is spent."""
    plan = replace(plan, run=str(run_path(plan).resolve()))
    if plan.replay:
        plan = replace(plan, replay=str(locate(plan.replay, Path("runs")).resolve()))
    seeds = load_seeds(plan)
    parts = AppParts(plan=plan, path=Path(plan.run), prices=price_book(plan))
    require_key(plan)
    require_prices(plan, parts.prices)
    suite = parts.suite()
    words = expectation(plan, suite, len(seeds))
    if suite.left_out:
        print(left_out_words(suite.left_out))
    fetch_weights(plan)
    name = Path(plan.run).name
    store = RunStore.create(Path(plan.run), name, encode_plan(plan), clock=SystemClock())
    store.close()
    keep(parts.path, parts.prices)
    try:
        return drive(parts, seeds, words)
    finally:
        _remove_if_never_started(Path(plan.run))


def resume(path: Path, *, allow: Sequence[str]) -> int:
    """Go on with a run; a finished one says so and nothing is done.

    Raises `RunError` where the allowed changes alter what the run is about.
    """
    with RunReader(path) as reader:
        past = tuple(reader.records())
        population = Population.of(past)
        if population.ended is not None:
            if allow:
                raise RunError(f"run {path}", "one that goes on, to change it", "a finished one")
            again = f"milo report {shlex.quote(str(path))}"
            print(f"run {path} is finished; nothing to do ({again} shows it again)")
            return OK
        owner = reader.owner()
        if owner is not None:
            raise RunError(f"run {path}", "one that nobody drives", f"owned by pid {owner.pid}")
        for warning in reader.warnings:
            print(f"warning: {warning}")
        recorded, seeds = on_record(reader, population)
    changes = changes_of(recorded, allow)
    for change in changes:
        print(f"changed: {change}")
    plan = replace(amend(recorded, allow) if allow else recorded, run=str(path.resolve()))
    parts = AppParts(plan=plan, path=path.resolve(), prices=kept(path, recorded))
    require_key(plan)
    require_prices(plan, parts.prices, AT_RESUME)
    fetch_weights(plan)
    overrides = tuple(change.override for change in changes)
    return drive(parts, seeds or load_seeds(plan), f"resuming {path}", overrides, past)


def run_path(plan: RunPlan) -> Path:
    """Where the run will lie: as asked, or ``runs/<time>-<suite>``."""
    if plan.run:
        return Path(plan.run)
    suite = plan.suite.name if not plan.suite.path else Path(plan.suite.path).name
    return Path("runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{suite}"


def load_seeds(plan: RunPlan) -> tuple[Seed, ...]:
    """The seed harnesses, checked; raises `HarnessError` naming the directory and what is wrong."""
    folders = [Path(folder) for folder in plan.seeds]
    if not folders and plan.suite.name == "arena" and not plan.suite.path:
        return arena_seeds(with_model=plan.model.name != NO_MODEL)
    if not folders:
        folders = sorted(path.parent for path in BUILT_IN_SEEDS.glob("*/harness.toml"))
    for folder in folders:
        if not folder.exists() and folder.name in recipes.names():
            expected = f"it added (milo seed add {folder.name})"
            raise HarnessError(f"seed {folder.name}", expected, f"no {folder}")
    seeds = [Seed(name=folder.name, harness=Harness.from_dir(folder)) for folder in folders]
    first: dict[str, str] = {}
    for seed in seeds:
        twin = first.setdefault(seed.harness.digest, seed.name)
        if twin != seed.name:
            raise HarnessError(f"seed {seed.name}", "seeds that differ", f"the same tree as {twin}")
    return tuple(seeds)


def expectation(plan: RunPlan, suite: Suite, seeds: int) -> str:
    """What the budget should buy, in words; raises `ConfigError` where it can't score a child."""
    return str(estimate(size_of(plan, suite, seeds), plan.budget))


def fetch_weights(plan: RunPlan) -> None:
    """Have the embedded model's weights in the cache, with a progress bar while they come.

    Raises `ConfigError` where those of the user's own are none.
    """
    if plan.model.name not in LOCAL_MODELS or plan.model.base_url or plan.replay:
        return
    if own_weights(plan) is not None:
        return
    weights = built_in(plan.model.name)
    if cached(weights, weights_cache()) is None:
        bar = progress_bar(Console(stderr=True))
        try:
            fetch(weights, weights_cache(), bar)
        finally:
            bar.close()


def drive(
    parts: AppParts,
    seeds: Sequence[Seed],
    words: str,
    overrides: Sequence[str] = (),
    past: Sequence[Record] = (),
) -> int:
    """Run or go on with a run that has a directory; shows it, reports it, says how to resume.

    `past` is all that is on record: read once, since a large run takes seconds.
    """
    plan = parts.plan
    check_agents(plan.agents.mutators)
    wanted = {seed.harness.manifest.packages for seed in seeds} - {Packages()}
    parts = replace(parts, packages=tuple(sorted(wanted, key=str)))
    if not plan.cluster.address:  # else this machine need not be a container host
        check_packages(parts.packages, Shelf(programs_folder()).find)
    shown = choose_view(sys.stdout, plan.strategy.patience)
    view = NotedView(shown, parts.path, time.time)
    view.start(f"MILO {parts.path.name}", past)
    with RunReader(parts.path) as reader:
        view.progress(standing(reader, plan.budget, time.time()))
    view.message(words)
    following = Following(plan, parts.path, parts.prices, past)
    if following.fault:
        view.message(f"tracking is off: {following.fault}")
    foresight = Foresight(size_of(plan, parts.suite(), len(seeds)), plan.budget)
    show = Showing(view, following, foresight, plan.budget, past)
    stage = RayStage(parts, [seed.harness for seed in seeds])
    watcher = Watcher(on_records=show.records, on_load=show.load)
    driver = Driver(parts, stage, seeds, watcher, overrides, past)
    try:
        ending = asyncio.run(_run(driver, view, parts.path))
    except PASSING:
        if _has_started(parts.path):
            view.message(f"go on with: milo resume {shlex.quote(str(parts.path))}")
        raise
    finally:
        view.stop()
    notes = tuple(info.description for info in stage.hosts)
    return _conclude(plan, parts.path, ending, notes, following)


def _conclude(
    plan: RunPlan,
    path: Path,
    ending: Ending,
    notes: Sequence[str],
    following: Following,
) -> int:
    if ending.interrupted:
        _close(following, {"reason": ending.reason})
        again = f"go on with: milo resume {shlex.quote(str(path))}"
        what = again if _has_started(path) else "nothing was spent"
        print(f"stopped: {ending.reason}; {what}")
        return INTERRUPTED
    report = report_of(path, notes)
    _close(following, {"reason": ending.reason, "searched": ending.searched})
    print_report(report, Console())
    return OK if ending.searched or plan.budget.rounds == 0 else FAILED


def _close(following: Following, summary: Mapping[str, object]) -> None:
    """A tracker that fails costs the user its curves, never the report."""
    fault = following.close(summary)
    if fault:
        print(f"tracking: {fault}")


async def _run(driver: Driver, view: View, path: Path) -> Ending:
    """Run with signals: the first stops cleanly, the second at once."""
    loop = asyncio.get_running_loop()
    main = asyncio.ensure_future(driver.run())
    asked = 0

    def stop() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            view.message("stopping: attempts that run may end (once more stops now)")
            driver.interrupt()
        else:
            main.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        return await main
    except asyncio.CancelledError:
        return Ending(reason="stopped at once", interrupted=True)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


class Showing:
    """Feeds the view and the tracker from what the driver tells."""

    def __init__(
        self,
        view: View,
        following: Following,
        foresight: Foresight,
        budget: Budget,
        past: Sequence[Record],
    ) -> None:
        self._view = view
        self._foresight = foresight
        self._following = following
        self._budget = budget
        self._clock = WallClock()
        for record in past:
            self._clock.apply(record)
        self._known = past[-1].seq if past else -1
        self._troubled: set[str] = set()

    def records(self, records: Sequence[Record]) -> None:
        """New records; those of an earlier session were shown at the start."""
        fresh = [record for record in records if record.seq > self._known]
        for record in fresh:
            self._clock.apply(record)
        self._following.records(records)
        if fresh:
            self._view.update(fresh)

    def load(self, load: Load, spend: Mapping[str, Spend]) -> None:
        """What is going on, about twice a second."""
        zero, total = self._clock.zero, sum(spend.values(), Spend())
        self._following.spent(total)
        if words := self._foresight.look(load, spend["target"]):
            self._view.message(words)
        self._tell(load.troubles)
        work = {doing.island: _work(doing) for doing in load.doing}
        self._view.progress(
            Progress(
                budget=self._budget,
                spent=total,
                seconds=0.0 if zero is None else time.time() - zero,
                slots_busy=load.busy,
                slots_total=load.slots,
                queued=load.queued,
                islands={name: w for name, w in work.items() if name != "run"},
                whole=work.get("run"),
                is_priced=self._following.is_priced,
                troubles=load.troubles,
            )
        )

    def _tell(self, troubles: Sequence[str]) -> None:
        """A line for each that began, and one for each that is over."""
        now = {trouble.partition(": ")[0]: trouble for trouble in troubles}
        for who in sorted(now.keys() - self._troubled):
            self._view.message(f"waiting: {now[who]}")
        for who in sorted(self._troubled - now.keys()):
            self._view.message(f"{who}: no longer waiting")
        self._troubled = set(now)


def _work(doing: IslandDoing) -> Work:
    return Work(
        doing=doing.what,
        candidate=doing.candidate,
        parent=doing.parent,
        done=doing.done,
        wanted=doing.wanted,
    )


def _remove_if_never_started(path: Path) -> None:
    """A run that could not even be set up leaves no directory behind."""
    try:
        kept = _has_started(path)
    except RunError:
        return
    if not kept:
        shutil.rmtree(path, ignore_errors=True)


def _has_started(path: Path) -> bool:
    """Whether a run directory holds anything that was paid for, or may be gone on with.

    A run's first record says that it exists, so one is enough.
    """
    with RunReader(path) as reader:
        return next(iter(reader.records()), None) is not None or reader.attempts.count > 0
