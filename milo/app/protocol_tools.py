"""`milo compare` and `milo bench`: leaderboards of runs, and search methods under a protocol."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from milo.app.inspect import locate, runs_below
from milo.core.errors import RunError
from milo.core.plan import RunPlan
from milo.protocols.entries import SPLITS, Entry, read_entry
from milo.protocols.leaderboard import leaderboard
from milo.protocols.table import json_ready, leaderboard_text

if TYPE_CHECKING:
    from milo.app.benching import Launch
    from milo.app.cli import Launcher


def compare_text(
    names: Sequence[str], runs_dir: Path, *, split: str = "", each: bool = False, as_json: bool
) -> str:
    """What `milo compare` prints. A name may be a run, or a folder of runs (a multirun).

    Runs without a winner are left out, and said. Raises `RunError` where fewer than one is left.
    """
    entries, left_out = entries_of(paths_of(names, runs_dir), split)
    if not entries:
        raise RunError("runs to compare", "at least one run with a scored winner", _say(left_out))
    board = leaderboard(entries, np.random.default_rng(0), each=each)
    if as_json:
        data = {**_data(json_ready(board)), "left_out": left_out}
        return json.dumps(data, indent=2, sort_keys=True, allow_nan=False)
    return "\n".join([leaderboard_text(board), *(f"left out: {reason}" for reason in left_out)])


def run_bench(args: argparse.Namespace, launcher: Launcher) -> int:
    """What `milo bench` does with its parsed words; the exit code."""
    from milo.app.benching import Bench, EvoBenchOptions, HarnessOptOptions, parse_weights
    from milo.runtime.ray_stage import RayStage

    bench = Bench(launch=launch_with(launcher), stage_of=RayStage)
    if args.protocol == "harnessopt":
        caps = HarnessOptOptions(
            passes=args.passes, calls=args.calls, tokens=args.tokens, rounds=args.rounds
        )
        return bench.harnessopt(args.suite, args.overrides, caps, as_json=args.json)
    budget = EvoBenchOptions(
        iterations=args.iterations,
        hours=args.hours,
        weights=parse_weights(args.weights),
        every_attempt=tuple(filter(None, args.pass_hat.split(","))),
    )
    return bench.evobench(args.suite, args.overrides, budget, as_json=args.json)


def launch_with(launcher: Launcher) -> Launch:
    """Start a run, or go on with one that was stopped."""
    from milo.app.inspect import progress_of
    from milo.app.run_progress import RunProgress

    def launch(plan: RunPlan) -> int:
        path = Path(plan.run)
        if progress_of(path) is RunProgress.STOPPED:
            return launcher.resume(path, allow=())
        return launcher.launch(plan)

    return launch


def paths_of(names: Sequence[str], runs_dir: Path) -> tuple[Path, ...]:
    """The run directories that names mean, each once; a folder means the runs below it."""
    return tuple(dict.fromkeys(path for name in names for path in _runs_of(name, runs_dir)))


def _runs_of(name: str, runs_dir: Path) -> tuple[Path, ...]:
    folder = Path(name)
    if folder.is_dir() and not (folder / "run.json").is_file():
        found = runs_below(folder)
        if found:
            return found
    return (locate(name, runs_dir),)


def entries_of(paths: Sequence[Path], split: str = "") -> tuple[list[Entry], list[str]]:
    """The entries on one split, and why runs are left out: the named split, else test where any
    winner is scored there, else validation."""
    for chosen in (split,) if split else SPLITS:
        entries: list[Entry] = []
        left_out: list[str] = []
        for path in paths:
            try:
                entries.append(read_entry(path, chosen))
            except RunError as error:
                left_out.append(" ".join(str(error).split()))
        if entries:
            return entries, left_out
    return [], left_out


def _data(value: object) -> dict[str, object]:
    assert isinstance(value, dict), "a leaderboard is a mapping"
    return value


def _say(reasons: Sequence[str]) -> str:
    return "; ".join(reasons) or "none"
