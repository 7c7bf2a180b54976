"""The command line: `milo run`, `resume`, `status`, `report`, `export`, `doctor`, `seed`, `suite`.

Exit codes: 0 done, 2 the user's input is wrong, 1 any other failure, 130 interrupted. Heavy
imports wait until a command needs them, so that `milo --help` answers at once.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from milo.app.arena_commands import add_arena
from milo.app.protocol_commands import add_comparing
from milo.app.seed_commands import add_seeds
from milo.app.watch_commands import add_watching
from milo.core.errors import MiloError, UserError
from milo.core.redaction import redactor, secrets_of

if TYPE_CHECKING:
    from milo.core.plan import RunPlan

OK, FAILED, USER_ERROR, INTERRUPTED = 0, 1, 2, 130

RUNS_DIR = Path("runs")
"""Where runs lie by default, below the current directory."""


class Launcher(Protocol):
    """What starts and resumes runs; both answer with an exit code."""

    def launch(self, plan: RunPlan) -> int:
        """Run a plan to its end."""
        ...

    def resume(self, path: Path, *, allow: Sequence[str]) -> int:
        """Go on with a run, allowing these changes of its configuration."""
        ...


def main(argv: Sequence[str] | None = None, *, launcher: Launcher | None = None) -> int:
    """Run one command; never raises for an error of the user's, MILO's or the provider's."""
    _say_what_can_be_said(sys.stdout)
    parser = build_parser()
    args, rest = parser.parse_known_args(argv)
    _take_rest(parser, args, rest)
    args.launcher = launcher
    try:
        code: int = args.handler(args)
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`milo runs | head`); nothing is left to say to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except MiloError as error:
        # One line: what went wrong with the user's input or outside is no place in our code.
        said = redactor(secrets_of(os.environ).values()).text(" ".join(str(error).split()))
        print(f"error: {said}", file=sys.stderr)
        return USER_ERROR if isinstance(error, UserError) else FAILED
    except OSError as error:
        return _outside(error)
    except Exception:  # the process boundary: whatever is left is a fault of ours
        return _fault()


def _say_what_can_be_said(stream: object) -> None:
    """A terminal or a log that knows no arrow gets a question mark: that ends no search."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


def _outside(error: OSError) -> int:
    """Tell of a place that can't be written, or of a disk that is full: the user's to mend."""
    if error.filename is None and error.errno != errno.ENOSPC:
        return _fault()
    place = f"{error.filename}: " if error.filename else ""
    print(f"error: {place}{error.strerror}", file=sys.stderr)
    return FAILED


def _fault() -> int:
    """Tell of the exception that is being handled."""
    said = redactor(secrets_of(os.environ).values()).text(traceback.format_exc())
    print(said, end="", file=sys.stderr)
    print("error: this is a fault in MILO; `milo doctor` may tell more", file=sys.stderr)
    return FAILED


def build_parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    parser = argparse.ArgumentParser(
        prog="milo", description="Find a better harness for a frozen model.", allow_abbrev=False
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_running(commands)
    _add_reading(commands)
    add_watching(commands, RUNS_DIR)
    add_comparing(commands, RUNS_DIR)
    _add_checking(commands)
    add_arena(commands)
    _add_mutators(commands)
    add_seeds(commands)
    return parser


def _add_running(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run", help="search for a better harness", epilog="`milo keys` lists every key."
    )
    run.add_argument("-m", "--multirun", action="store_true", help="run every combination of a,b")
    run.add_argument("--into", type=Path, metavar="DIR", help="a multirun's directory, to go on")
    run.add_argument("overrides", nargs="*", metavar="key=value")
    run.set_defaults(handler=_run)
    resume = commands.add_parser("resume", help="go on with a run that was stopped")
    resume.add_argument("run", metavar="RUN", help="a path or a unique name")
    words = "budget, cluster, tracking, or where suite and model are found; it stays so"
    resume.add_argument(
        "--allow-changes", nargs="+", default=[], metavar="key=value", dest="allow", help=words
    )
    resume.set_defaults(handler=_resume)
    keys = commands.add_parser("keys", help="list what `milo run` can be told")
    keys.set_defaults(handler=_keys)


def _add_reading(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    status = commands.add_parser("status", help="what a run is doing, alive or dead")
    status.add_argument("run", metavar="RUN")
    status.add_argument("--json", action="store_true")
    status.set_defaults(handler=_status)
    report = commands.add_parser("report", help="what a run found; figures of several")
    report.add_argument("runs", metavar="RUN", nargs="+", help="several with --figures only")
    form = report.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--markdown", action="store_true")
    form.add_argument("--html", type=Path, metavar="FILE", help="write the replay page")
    words = "write the leaderboard and figures for a paper"
    form.add_argument("--figures", action="store_true", help=words)
    report.add_argument(
        "--into", type=Path, default=Path("figures"), metavar="DIR", help="where figures go"
    )
    report.set_defaults(handler=_report)
    runs = commands.add_parser("runs", help="list the runs here")
    runs.add_argument("--json", action="store_true")
    runs.set_defaults(handler=_runs)
    export = commands.add_parser("export", help="copy a harness out of a run")
    export.add_argument("run", metavar="RUN")
    export.add_argument("candidate", nargs="?", default="", metavar="CANDIDATE")
    export.add_argument("target", type=Path, metavar="DIR", help="must not exist or be empty")
    export.add_argument("--json", action="store_true")
    export.set_defaults(handler=_export)


def _add_checking(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = commands.add_parser("doctor", help="check this machine, and say what to do")
    doctor.set_defaults(handler=_doctor)
    suite = commands.add_parser("suite", help="look at suites of tasks")
    kinds = suite.add_subparsers(dest="suite_command", required=True, metavar="COMMAND")
    check = kinds.add_parser("check", help="check every task: its reference must score full")
    check.add_argument("path", metavar="PATH", help="a folder of tasks, or a built-in suite")
    kinds_of_sandbox = ("auto", "bubblewrap", "plain", "docker")
    check.add_argument("--sandbox", choices=kinds_of_sandbox, default="auto", help="where to run")
    check.add_argument("--image", default="", help="containers: for tasks that name no image")
    modes = ("no-network", "public")
    saying = "for tasks that say nothing about the network"
    check.add_argument("--network", choices=modes, default=modes[0], help=saying)
    check.set_defaults(handler=_suite_check)
    listing = kinds.add_parser("list", help="the built-in suites")
    listing.set_defaults(handler=_suite_list)


def _add_mutators(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    listings = {"mutators": _mutators_list, "peers": _peers_list}
    words = {"mutators": "coding agents as mutators", "peers": "search methods of other packages"}
    for command, listing in listings.items():
        kinds = commands.add_parser(command, help=words[command]).add_subparsers(
            dest=f"{command}_command", required=True, metavar="COMMAND"
        )
        kinds.add_parser("list", help="which there are").set_defaults(handler=listing)
        install = kinds.add_parser("install", help="install them for this machine")
        install.add_argument("names", nargs="+", metavar="NAME", help="a name, or a description")
        install.set_defaults(handler=_mutators_install)


def _take_rest(
    parser: argparse.ArgumentParser, args: argparse.Namespace, rest: Sequence[str]
) -> None:
    """argparse stops taking words at the first option after them; give `run` the others too."""
    options = [word for word in rest if word.startswith("-")]
    if args.command == "resume" and rest and not options:
        words = f"milo resume {args.run} --allow-changes {' '.join(rest)}"
        parser.error(f"a resume changes nothing unless it is allowed to: {words}")
    if options or (rest and args.command not in ("run", "bench")):
        parser.error(f"unrecognized arguments: {' '.join(options or rest)}")
    if rest:
        args.overrides = [*args.overrides, *rest]


class _Version(argparse.Action):
    def __call__(self, *_: object, **__: object) -> NoReturn:
        from milo import __version__

        print(f"milo {__version__}")
        sys.exit(OK)


# --- handlers ----------------------------------------------------------------------------------


def _launcher(args: argparse.Namespace) -> Launcher:
    if args.launcher is not None:
        given: Launcher = args.launcher
        return given
    import importlib

    module: Launcher = importlib.import_module("milo.app.launch")
    return module


def _run(args: argparse.Namespace) -> int:
    from milo.app.asking import with_budget

    if args.multirun or args.into:
        return _multirun(args)
    terminal = _terminal()
    plan = with_budget(args.overrides, terminal=terminal)
    if terminal is not None and not _agreed(plan, terminal):
        print("nothing was started, nothing was spent")
        return INTERRUPTED
    return _launcher(args).launch(plan)


def _agreed(plan: RunPlan, terminal: Callable[[str], str]) -> bool:
    """Whether the user goes on, once told what money is at stake; nobody is asked where none is."""
    from milo.app.foresight import agreed, at_stake
    from milo.app.pricing import price_book, require_prices

    prices = price_book(plan)
    require_prices(plan, prices)
    return agreed(at_stake(plan, prices), terminal)


def _multirun(args: argparse.Namespace) -> int:
    from datetime import datetime

    from milo.app.inspect import progress_of
    from milo.app.multirun import Multirun

    folder = args.into or Path("multirun") / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    multirun = Multirun(launcher=_launcher(args), progress_of=progress_of)
    return multirun.run(args.overrides, folder, terminal=_terminal())


def _resume(args: argparse.Namespace) -> int:
    from milo.app.inspect import locate

    return _launcher(args).resume(locate(args.run, RUNS_DIR), allow=args.allow)


def _terminal() -> Callable[[str], str] | None:
    """How to ask the user, or None where nobody is there to answer."""
    return input if sys.stdin.isatty() and sys.stdout.isatty() else None


def _keys(_: argparse.Namespace) -> int:
    from milo.app.keys import describe_keys

    print(describe_keys())
    return OK


def _status(args: argparse.Namespace) -> int:
    from milo.app.inspect import locate, status_text

    print(status_text(locate(args.run, RUNS_DIR), as_json=args.json))
    return OK


def _report(args: argparse.Namespace) -> int:
    from milo.app.inspect import locate, report_text

    if args.figures:
        from milo.app.papers import write_figures

        print(write_figures(args.runs, RUNS_DIR, args.into))
        return OK
    if len(args.runs) > 1:
        raise UserError("milo report", "one run, or several with --figures", f"{len(args.runs)}")
    run = locate(args.runs[0], RUNS_DIR)
    if args.html:
        from milo.app.watching import write_html

        print(write_html(run, args.html))
        return OK
    form = "json" if args.json else "markdown" if args.markdown else "text"
    print(report_text(run, form=form))
    return OK


def _runs(args: argparse.Namespace) -> int:
    from milo.app.inspect import runs_text

    print(runs_text((RUNS_DIR, Path("multirun")), as_json=args.json))
    return OK


def _export(args: argparse.Namespace) -> int:
    from milo.app.inspect import export, locate

    run = locate(args.run, RUNS_DIR)
    print(export(run, args.candidate, args.target, as_json=args.json))
    return OK


def _doctor(_: argparse.Namespace) -> int:
    from milo.app.doctor import examine, render, verdict

    findings = examine(os.environ)
    print(render(findings))
    return FAILED if verdict(findings) else OK


def _suite_check(args: argparse.Namespace) -> int:
    from milo.app.suite_tools import check_suite

    return check_suite(args.path, sandbox=args.sandbox, network=args.network, image=args.image)


def _suite_list(_: argparse.Namespace) -> int:
    from milo.app.suite_tools import list_suites

    print(list_suites())
    return OK


def _mutators_list(_: argparse.Namespace) -> int:
    from milo.app.agents import agents_text

    print(agents_text())
    return OK


def _peers_list(_: argparse.Namespace) -> int:
    from milo.app.agents import peers_text

    print(peers_text())
    return OK


def _mutators_install(args: argparse.Namespace) -> int:
    from milo.app.agents import install

    install(args.names)
    return OK


if __name__ == "__main__":
    sys.exit(main())
