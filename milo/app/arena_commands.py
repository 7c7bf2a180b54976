"""The grammar of `milo arena`; what the commands do is loaded when one of them is called."""

from __future__ import annotations

import argparse
from pathlib import Path

OK = 0


def add_arena(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `milo arena status`, `verify`, `export` and `curve`."""
    arena = commands.add_parser("arena", help="records of open problems")
    kinds = arena.add_subparsers(dest="arena_command", required=True, metavar="COMMAND")
    status = kinds.add_parser("status", help="best known, ours, margin, threshold")
    words = "runs, or folders of runs, that lie elsewhere: what they found is entered"
    status.add_argument("runs", metavar="RUN", nargs="*", help=words)
    status.add_argument("--json", action="store_true")
    status.set_defaults(handler=_status)
    check = kinds.add_parser("verify", help="judge a construction by both verifiers")
    check.add_argument("file", type=Path, metavar="FILE", help="the arena's JSON")
    words = "where no key `problem` of the file names it"
    check.add_argument("--problem", default="", metavar="NAME", help=words)
    check.add_argument("--keep", action="store_true", help="enter it into the archive")
    check.set_defaults(handler=_verify)
    export = kinds.add_parser("export", help="the best construction, as the arena's JSON")
    export.add_argument("problem", metavar="PROBLEM")
    export.add_argument("--to", type=Path, metavar="FILE", help="instead of the terminal")
    export.add_argument("--plot", type=Path, metavar="FILE.svg", help="over where it started")
    export.set_defaults(handler=_export)
    curve = kinds.add_parser("curve", help="a run's best so far against wall-clock")
    curve.add_argument("run", metavar="RUN", help="a path or a unique name")
    curve.add_argument("--json", action="store_true")
    curve.set_defaults(handler=_curve)


def _status(args: argparse.Namespace) -> int:
    from milo.app.arena import status_text

    print(status_text(as_json=args.json, named=args.runs))
    return OK


def _verify(args: argparse.Namespace) -> int:
    from milo.app.arena import verify_text

    print(verify_text(args.file, args.problem, keep=args.keep))
    return OK


def _export(args: argparse.Namespace) -> int:
    from milo.app.arena import export_text

    print(export_text(args.problem, to=args.to, plot=args.plot))
    return OK


def _curve(args: argparse.Namespace) -> int:
    from milo.app.arena_runs import curve_text
    from milo.app.inspect import locate

    print(curve_text(locate(args.run, Path("runs")), as_json=args.json))
    return OK
