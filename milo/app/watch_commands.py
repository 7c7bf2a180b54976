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


def _view(args: argparse.Namespace) -> int:
    from milo.app.inspect import locate
    from milo.app.watching import serve

    run = locate(args.run, args.runs_dir)
    return serve(run, host=args.host, port=args.port, browse=not args.no_browser)
