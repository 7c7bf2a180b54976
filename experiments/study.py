"""What all studies share: their words for `milo run`, their smoke size, the table at the end.

A study is run as `python experiments/NAME.py [--smoke] [--into DIR] [key=value …]`; your words win
over the study's. The same command with the same directory goes on where it stopped. Jobs run one
after another; a failed one is named and the others go on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from milo.app.cli import Launcher
from milo.app.cli import main as milo
from milo.app.inspect import progress_of, runs_below
from milo.app.overrides import canonical
from milo.app.run_progress import RunProgress
from milo.core.harness import Harness

SMOKE = (
    "suite.search=3",
    "suite.validation=3",
    "suite.test=3",
    "suite.k=1",
    "budget.rounds=1",
    "admission.alpha=1",
    "tracking=off",
)
"""Minutes on a small machine: enough to see that every step runs, too little to tell anything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """A question, the words that are swept, those of the full size, and how to read the result.

    `together` puts all runs into one table; apart, each run has its own with its own seeds (where
    runs differ in the task or the model, their seeds are not the same measurement). `smoke`
    replaces swept words where the smoke size is smaller.
    """

    name: str
    question: str
    sweep: tuple[str, ...]
    size: tuple[str, ...]
    smoke: tuple[str, ...] = ()
    together: bool = True
    each: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What the command line asks for."""

    smoke: bool
    into: Path
    words: tuple[str, ...]
    to: tuple[str, ...] = ()


def laid_over(*layers: Sequence[str]) -> list[str]:
    """Words in order, a later layer's word replacing an earlier one of the same key."""
    found: dict[str, str] = {}
    for layer in layers:
        for word in layer:
            found[canonical(word.partition("=")[0])] = word
    return list(found.values())


def order_of(study: Study, argv: Sequence[str] | None, *, transfer: bool = False) -> Order:
    """Parse a study's command line."""
    parser = argparse.ArgumentParser(description=study.question)
    parser.add_argument("--smoke", action="store_true", help="the tiny size")
    parser.add_argument("--into", type=Path, default=None, metavar="DIR")
    if transfer:
        parser.add_argument(
            "--to", action="append", required=True, metavar="key=value", help="of the second stage"
        )
    parser.add_argument("words", nargs="*", metavar="key=value")
    args = parser.parse_args(argv)
    into = args.into or Path("multirun") / f"{study.name}{'-smoke' if args.smoke else ''}"
    to = tuple(args.to) if transfer else ()
    return Order(smoke=args.smoke, into=into, words=tuple(args.words), to=to)


def sized(study: Study, order: Order) -> list[str]:
    """The study's words at the size that is asked for, under the user's."""
    size = (*SMOKE, *study.smoke) if order.smoke else study.size
    return laid_over(study.sweep, size, order.words)


def run_sweep(study: Study, argv: Sequence[str] | None, launcher: Launcher | None = None) -> int:
    """Every combination of the swept words, then the comparison; the exit code of the runs."""
    order = order_of(study, argv)
    words = sized(study, order)
    code = milo(["run", "-m", "--into", str(order.into), *words], launcher=launcher)
    if not runs_below(order.into):
        return code
    each = ["--each"] if study.each else []
    tables = [order.into] if study.together else runs_below(order.into)
    for table in tables:
        print(f"\n{study.question} ({table})", flush=True)
        milo(["compare", *each, str(table)])
    return code


def run_transfer(study: Study, argv: Sequence[str] | None, launcher: Launcher | None = None) -> int:
    """Search, export the winner, score it unchanged beside the seeds elsewhere, compare there."""
    order = order_of(study, argv, transfer=True)
    words = sized(study, order)
    search, evolved, there = (order.into / name for name in ("search", "evolved", "transfer"))
    code = _finished(search, words, launcher)
    if code:
        return code
    if not evolved.exists():
        code = milo(["export", str(search), str(evolved)])
        if code:
            return code
    seeds = _seeds(words)
    if is_among(evolved, seeds):
        print("the winner of the search is a seed: nothing was evolved that could be transferred")
    else:
        seeds.append(str(evolved))
    again = laid_over(words, ("strategy=best_of_seeds", f"seeds={','.join(seeds)}"))
    again = laid_over([w for w in again if not w.startswith("budget.rounds=")], order.to)
    code = _finished(there, again, launcher)
    print(f"\n{study.question} ({there})", flush=True)
    return milo(["compare", str(there)]) or code


def is_among(folder: Path, seeds: Sequence[str]) -> bool:
    """Whether a harness has the same content as one of the seeds."""
    digest = Harness.from_dir(folder).digest
    return any(Harness.from_dir(Path(seed)).digest == digest for seed in seeds)


def _finished(run: Path, words: Sequence[str], launcher: Launcher | None) -> int:
    """Run to the end, or go on; 0 once the run has ended (no search at all may be meant)."""
    state = progress_of(run)
    if state is RunProgress.ABSENT:
        code = milo(["run", f"run={run}", *words], launcher=launcher)
    elif state is RunProgress.STOPPED:
        code = milo(["resume", str(run)], launcher=launcher)
    else:
        return 0
    return 0 if progress_of(run) is RunProgress.FINISHED else code or 1


def _seeds(words: Sequence[str]) -> list[str]:
    """The user's seeds, else those that come with MILO."""
    import milo as package

    named = [w.partition("=")[2] for w in words if canonical(w.partition("=")[0]) == "seeds"]
    if named:
        return named[0].split(",")
    root = Path(package.__file__).parent / "seeds"
    return sorted(str(path.parent) for path in root.glob("*/harness.toml"))
