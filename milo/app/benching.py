"""`milo bench`: run a search method under a benchmark's protocol, and print its row.

The search is an ordinary run whose splits, seed and budget follow the protocol unless the user's
words say otherwise. When it has ended, the frozen winner and the seed are scored on the held-out
split as often as the protocol asks; attempts on record are not made again, so the same command goes
on where it stopped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from milo.app.compose import AppParts
from milo.app.config import compose, require_budget
from milo.app.inspect import progress_of
from milo.app.launch import BUILT_IN_SEEDS, run_path
from milo.app.overrides import canonical
from milo.app.run_progress import RunProgress
from milo.core.errors import ConfigError, RunError
from milo.core.plan import RunPlan
from milo.core.task import Network, Suite
from milo.protocols.caps import Account, ProtocolCaps, audited
from milo.protocols.entries import Scored, read_entry
from milo.protocols.evobench import VISIBLE_SHARE, EvoBenchRow, Scale, evobench_row
from milo.protocols.harnessopt import SPLIT_SHARES, HarnessOptRow, harnessopt_row
from milo.protocols.rows import evobench_text, harnessopt_text
from milo.protocols.table import json_ready
from milo.protocols.task_choice import apportion
from milo.runtime.parts import EvaluationRequest, Parts
from milo.runtime.stage import Stage
from milo.store import RunReader, decode_plan
from milo.suites.folder import scan_folder
from milo.suites.quarantine import cleared, read
from milo.suites.suite import load_suite

OK, FAILED = 0, 1
PINNED_SEED = BUILT_IN_SEEDS / "bare"
"""The seed where the user names none: small, and with headroom, as the protocols want it."""

Launch = Callable[[RunPlan], int]
"""Runs a plan to its end, or goes on with a stopped run; the exit code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HarnessOptOptions:
    """HarnessOpt-Bench's caps and its number of held-out rounds."""

    passes: float = 4.0
    calls: int = 100
    tokens: int | None = None
    rounds: int = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class EvoBenchOptions:
    """Evo-Bench's budget, its domain weights (families; none: all alike), and the families whose
    tasks count only where each of `attempts` attempts resolves them."""

    iterations: int = 20
    hours: float = 48.0
    weights: Mapping[str, float] | None = None
    every_attempt: tuple[str, ...] = ()
    attempts: int = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """What a benchmark run works with. `stage_of` makes where held-out attempts are run."""

    launch: Launch
    stage_of: Callable[[Parts], Stage]
    parts_of: Callable[[RunPlan], Parts] = lambda plan: AppParts(plan=plan, path=Path(plan.run))

    def harnessopt(
        self, suite: str, words: Sequence[str], options: HarnessOptOptions, *, as_json: bool
    ) -> int:
        """A row of HarnessOpt-Bench; 1 where the search failed or broke a cap."""
        sizes = apportion(_count(suite, words), SPLIT_SHARES, [10**9] * len(SPLIT_SHARES))
        defaults = [*_sizes(sizes), f"budget.rounds={max(0, int(options.passes) - 1)}"]
        if options.tokens is not None:
            defaults.append(f"budget.tokens={options.tokens}")
        plan = plan_under(suite, words, [*defaults, "suite.k=1"])
        code = self._search(plan)
        if code:
            return code
        held_out = self.parts_of(plan).suite()
        wanted = dict.fromkeys(held_out.splits.test, options.rounds)
        asyncio.run(self._hold_out(plan, wanted))
        row = harnessopt_row(
            read_entry(Path(plan.run), "test"), _account(plan, held_out, options), options.rounds
        )
        print(_json(row, resolved=row.is_resolved) if as_json else harnessopt_text(row))
        return FAILED if row.exceeded else OK

    def evobench(
        self, suite: str, words: Sequence[str], options: EvoBenchOptions, *, as_json: bool
    ) -> int:
        """A row of Evo-Bench; 1 where the search failed or went beyond its budget."""
        n = _count(suite, words)
        visible = max(2, round(n * VISIBLE_SHARE))
        sizes = (visible - visible // 2, visible // 2, n - visible)
        defaults = [*_sizes(sizes), f"budget.hours={options.hours:g}"]
        plan = plan_under(
            suite, words, [*defaults, f"budget.rounds={options.iterations}", "suite.k=1"]
        )
        scale = _scale(self.parts_of(plan).suite(), options)
        code = self._search(plan)
        if code:
            return code
        tasks = self.parts_of(plan).suite().splits.test
        asyncio.run(
            self._hold_out(
                plan,
                {
                    task: options.attempts if scale.domains[task] in scale.every_attempt else 1
                    for task in tasks
                },
            )
        )
        path = Path(plan.run)
        with RunReader(path) as reader:
            row = evobench_row(
                read_entry(path, "test"),
                reader.population().lineage,
                scale,
                iterations=options.iterations,
                hours=options.hours,
            )
        print(_json(row, gain=row.gain) if as_json else evobench_text(row))
        return FAILED if row.exceeded else OK

    def _search(self, plan: RunPlan) -> int:
        """Run the search, or go on with it, unless it has ended; its exit code.

        Raises `RunError` where the directory holds a run of another configuration.
        """
        path = Path(plan.run)
        progress = progress_of(path)
        if progress is not RunProgress.ABSENT:
            with RunReader(path) as reader:
                before = decode_plan(reader.plan)
            if replace(before, run="") != replace(plan, run=""):
                raise RunError(f"run {path}", "a run of the same configuration", "another")
        return OK if progress is RunProgress.FINISHED else self.launch(plan)

    async def _hold_out(self, plan: RunPlan, wanted: Mapping[str, int]) -> None:
        """Score the frozen winner and the seeds on the held-out tasks, `wanted` attempts each."""
        entry = read_entry(Path(plan.run), "test")
        lacking = {
            scored.candidate: _by_attempts(scored, wanted)
            for scored in {s.candidate: s for s in (entry.winner, *entry.seeds)}.values()
        }
        if not any(lacking.values()):
            return
        stage = self.stage_of(self.parts_of(plan))
        try:
            await stage.open()
            await asyncio.gather(
                *(
                    _evaluate(stage, candidate, tasks, k)
                    for candidate, by_k in lacking.items()
                    for k, tasks in by_k.items()
                )
            )
        finally:
            await stage.close()


async def _evaluate(stage: Stage, candidate: str, tasks: Sequence[str], k: int) -> None:
    await stage.peers.dispatcher.evaluate(
        EvaluationRequest(
            island="run",
            candidate=candidate,
            harness=await stage.peers.recorder.get_harness(candidate),
            split="test",
            tasks=tuple(tasks),
            k=k,
        )
    )


def _by_attempts(scored: Scored, wanted: Mapping[str, int]) -> dict[int, list[str]]:
    """Tasks that lack valid attempts, by the number that is wanted of them."""
    made = {task: 0 for task in wanted}
    for (task, _), outcomes in scored.outcomes.items():
        made[task] = sum(outcome.is_valid for outcome in outcomes)
    lacking: dict[int, list[str]] = {}
    for task, k in wanted.items():
        if made[task] < k:
            lacking.setdefault(k, []).append(task)
    return lacking


# --- plans ----------------------------------------------------------------------------------------


def plan_under(suite: str, words: Sequence[str], defaults: Sequence[str]) -> RunPlan:
    """The user's plan with a protocol's words for every key that the user left open.

    Raises `ConfigError` for more than one seed, no held-out tasks, or no budget.
    """
    given = {canonical(word.partition("=")[0]) for word in words}
    if "suite" in given:
        raise ConfigError("suite", "the suite named once, before the other words", "a second one")
    filled = [word for word in defaults if canonical(word.partition("=")[0]) not in given]
    if not given & {"seeds", "seeds.dirs"}:
        filled.append(f"seeds={PINNED_SEED}")
    plan = compose([f"suite={suite}", *filled, *words])
    require_budget(plan)
    if len(plan.seeds) != 1:
        raise ConfigError("seeds", "one pinned seed harness", f"{len(plan.seeds)}")
    if plan.suite.test < 1:
        raise ConfigError("suite.test", "held-out tasks", str(plan.suite.test))
    return replace(plan, run=str(run_path(plan).resolve()))


def _count(suite: str, words: Sequence[str]) -> int:
    """How many tasks the user's suite has, in the families that the user chose."""
    families = [w for w in words if canonical(w.partition("=")[0]) == "suite.families"]
    one_each = ("suite.search=1", "suite.validation=1", "suite.test=0")
    plan = compose([f"suite={suite}", *families, *one_each]).suite
    if not plan.path:
        return len(load_suite(plan).tasks)
    folder = Path(plan.path)
    found = cleared(scan_folder(folder, Network(plan.network)), read(folder)).tasks
    return sum(not plan.families or task.family in plan.families for task in found.values())


def _sizes(sizes: Sequence[int]) -> list[str]:
    names = ("suite.search", "suite.validation", "suite.test")
    return [f"{name}={size}" for name, size in zip(names, sizes, strict=True)]


def _account(plan: RunPlan, suite: Suite, options: HarnessOptOptions) -> Account:
    """What the search used, audited from its records."""
    caps = ProtocolCaps(calls=options.calls, passes=options.passes, tokens=options.tokens)
    splits = suite.splits
    account = Account(caps, {"search": len(splits.search), "validation": len(splits.validation)})
    where = {t: "search" for t in splits.search} | {t: "validation" for t in splits.validation}
    with RunReader(Path(plan.run)) as reader:
        return audited(account, reader.records(), reader.attempts.iter(), where)


def _scale(suite: Suite, options: EvoBenchOptions) -> Scale:
    """Families as domains; raises `ConfigError` where weights and families differ."""
    domains = {task: suite.tasks[task].family for task in suite.tasks}
    held_out = {domains[task] for task in suite.splits.test}
    weights = options.weights or dict.fromkeys(sorted(held_out), 1.0)
    for name in (*weights, *options.every_attempt):
        if name not in held_out:
            known = ", ".join(sorted(held_out))
            raise ConfigError(
                f"domain {name!r}", f"a family of the held-out tasks: {known}", "none"
            )
    if set(weights) != held_out:
        absent = ", ".join(sorted(held_out - set(weights)))
        raise ConfigError(
            "weights", "one for every family of the held-out tasks", f"none for {absent}"
        )
    return Scale(domains=domains, weights=weights, every_attempt=options.every_attempt)


def parse_weights(text: str) -> dict[str, float] | None:
    """``search=2,office=2`` as weights; raises `ConfigError`. None for no text."""
    if not text:
        return None
    weights = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            weights[name] = float(value)
        except ValueError:
            raise ConfigError("weights", "FAMILY=NUMBER,FAMILY=NUMBER", repr(part)) from None
    return weights


def _json(row: HarnessOptRow | EvoBenchRow, **more: object) -> str:
    data = json_ready(row)
    assert isinstance(data, dict), "a row is a mapping"
    return json.dumps({**data, **more}, indent=2, sort_keys=True, allow_nan=False)
