"""The grammar of `milo compare` and `milo bench`; their work is in `protocol_tools`."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from milo.app.cli import Launcher

Commands = argparse._SubParsersAction  # argparse names no public type for these


def add_comparing(commands: Commands[argparse.ArgumentParser], runs_dir: Path) -> None:
    """Add both commands; names of runs are looked for below `runs_dir`."""
    compare = commands.add_parser("compare", help="rank the winners of runs, with paired tests")
    compare.add_argument("runs", nargs="+", metavar="RUN", help="runs, or folders of runs")
    compare.add_argument("--split", choices=("test", "validation"), default="")
    compare.add_argument("--each", action="store_true", help="a row for every run")
    compare.add_argument("--json", action="store_true")
    compare.set_defaults(handler=_compare, runs_dir=runs_dir)
    bench = commands.add_parser("bench", help="score a search method under a protocol")
    kinds = bench.add_subparsers(dest="protocol", required=True, metavar="PROTOCOL")
    _add_harnessopt(kinds)
    _add_evobench(kinds)


def _add_harnessopt(kinds: Commands[argparse.ArgumentParser]) -> None:
    kind = kinds.add_parser("harnessopt", help="HarnessOpt-Bench: normalised gain over one seed")
    kind.add_argument("--passes", type=float, default=4.0, help="case passes a partition")
    kind.add_argument("--calls", type=int, default=100, help="evaluation calls a partition")
    kind.add_argument("--tokens", type=int, default=None, help="target tokens of the search")
    kind.add_argument("--rounds", type=int, default=3, help="K, held-out rounds")
    _add_common(kind)


def _add_evobench(kinds: Commands[argparse.ArgumentParser]) -> None:
    kind = kinds.add_parser("evobench", help="Evo-Bench: Overall and AnytimeVal")
    kind.add_argument("--iterations", type=int, default=20)
    kind.add_argument("--hours", type=float, default=48.0)
    kind.add_argument("--weights", default="", metavar="FAMILY=N,…", help="of domains; else alike")
    kind.add_argument("--pass-hat", default="", metavar="FAMILY,…", help="score these by Pass^3")
    _add_common(kind)


def _add_common(kind: argparse.ArgumentParser) -> None:
    kind.add_argument("suite", metavar="SUITE", help="a folder of tasks, or a built-in suite")
    kind.add_argument("overrides", nargs="*", metavar="key=value", help="as for `milo run`")
    kind.add_argument("--json", action="store_true")
    kind.set_defaults(handler=_bench)


def _compare(args: argparse.Namespace) -> int:
    from milo.app.protocol_tools import compare_text

    print(
        compare_text(args.runs, args.runs_dir, split=args.split, each=args.each, as_json=args.json)
    )
    return 0


def _bench(args: argparse.Namespace) -> int:
    from milo.app.protocol_tools import run_bench

    launcher: Launcher = args.launcher or importlib.import_module("milo.app.launch")
    return run_bench(args, launcher)
