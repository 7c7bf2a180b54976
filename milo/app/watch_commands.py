"""The commands that look into a run: `view`, `show`, `diff`, `trace`. Grammar and handlers only;
whatever is heavy is imported when one of them is called.
"""

from __future__ import annotations

import argparse
from pathlib import Path

OK = 0


def add_watching(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], runs_dir: Path
) -> None:
    """Add the commands; names of runs are looked for below `runs_dir`."""
    view = commands.add_parser("view", help="serve a run's replay page, and follow the run")
    view.add_argument("run", metavar="RUN")
    view.add_argument("--port", type=int, default=0, help="0 takes a free one")
    view.add_argument("--host", default="127.0.0.1", help="where to listen; this machine only")
    view.add_argument("--no-browser", action="store_true", help="open no browser")
    view.set_defaults(handler=_view, runs_dir=runs_dir)
    show = commands.add_parser("show", help="a run's candidates, or one of them in full")
    show.add_argument("run", metavar="RUN")
    show.add_argument("candidate", nargs="?", default="", metavar="CANDIDATE")
    show.set_defaults(handler=_show, runs_dir=runs_dir)
    diff = commands.add_parser("diff", help="what two harnesses differ in: source and scores")
    diff.add_argument("a", metavar="A", help="RUN:CANDIDATE, RUN (its winner), or a directory")
    diff.add_argument("b", metavar="B", help="likewise, or a candidate of A's run")
    diff.set_defaults(handler=_diff, runs_dir=runs_dir)
    trace = commands.add_parser("trace", help="what was said and done in one attempt")
    trace.add_argument("run", metavar="RUN")
    words = "CANDIDATE:TASK[#INDEX], or CANDIDATE to list them; a session, or nothing to list those"
    trace.add_argument("attempt", nargs="?", default="", metavar="ATTEMPT", help=words)
    trace.set_defaults(handler=_trace, runs_dir=runs_dir)
    for command in (show, diff, trace):
        command.add_argument("--json", action="store_true")


def _view(args: argparse.Namespace) -> int:
    from milo.app.inspect import locate
    from milo.app.watching import serve

    run = locate(args.run, args.runs_dir)
    return serve(run, host=args.host, port=args.port, browse=not args.no_browser)


def _show(args: argparse.Namespace) -> int:
    from milo.app.inspect import locate
    from milo.app.looking import show

    show(locate(args.run, args.runs_dir), args.candidate, as_json=args.json)
    return OK


def _diff(args: argparse.Namespace) -> int:
    from milo.app.looking import diff

    diff(args.a, args.b, args.runs_dir, as_json=args.json)
    return OK


def _trace(args: argparse.Namespace) -> int:
    from milo.app.inspect import locate
    from milo.app.looking import trace

    trace(locate(args.run, args.runs_dir), args.attempt, as_json=args.json)
    return OK
