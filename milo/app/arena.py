"""`milo arena`: the archive of records, verifying a file, exporting a construction; and the seeds.

Records of finished and running runs are taken into the archive whenever it is looked at, so
nothing is lost with a run that died. That a published value is beaten is said only of what was
proved in exact arithmetic.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from milo.app.arena_runs import gathered
from milo.core.errors import ConfigError, UserError
from milo.core.harness import Harness
from milo.runtime.seeding import Seed
from milo.suites.arena.archive import Archive, Best, Provenance
from milo.suites.arena.drawing import drawing
from milo.suites.arena.exact import prove
from milo.suites.arena.harness.seeds import seed_trees
from milo.suites.arena.problems.catalogue import candidate_of, parse, problems
from milo.suites.arena.problems.problem import Array, Problem, Rejected, verify
from milo.suites.arena.tasks import start_of

FOLDER = Path("arena")
"""Where the archive lies, below the current directory."""
RUNS = (Path("runs"), Path("multirun"))
"""Where runs are looked for."""


def arena_seeds(*, with_model: bool) -> tuple[Seed, ...]:
    """The seed harnesses of the suite `arena`."""
    trees = seed_trees(with_model=with_model)
    return tuple(
        Seed(name=name, harness=Harness.from_tree(tree, name)) for name, tree in trees.items()
    )


# --- status ------------------------------------------------------------------------------------


def status_text(
    *,
    as_json: bool,
    named: Sequence[str] = (),
    folder: Path = FOLDER,
    runs: Sequence[Path] = RUNS,
) -> str:
    """A line per problem: best known, ours, the margin (positive where ours is better), whether it
    is proved, and what the arena asks for. What the `named` runs found is entered too.
    """
    archive, faults = gathered(folder, runs, named)
    rows = [_row(problem, archive.best(problem.name)) for problem in problems().values()]
    if as_json:
        return json.dumps(rows, indent=1)
    head = ("problem", "best known", "by", "ours", "margin", "proof", "asked", "from")
    lines = [head, *(tuple(_cell(key, row) for key in head) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return "\n".join(filter(None, (text, archive.warning, *faults)))


def _row(problem: Problem, ours: Best | None) -> dict[str, object]:
    best = problem.best_published
    margin = problem.gain(ours.value, best.value) if ours and best else None
    made = ours.provenance if ours else None
    return {
        "problem": problem.name,
        "best known": best.value if best else None,
        "printed": best.printed if best else "",
        "by": best.who if best else "",
        "ours": ours.value if ours else None,
        "margin": margin,
        "proof": _proof(problem, ours.construction) if ours and (margin or 0) > 0 else "",
        "asked": problem.minimum_improvement or None,
        "from": f"{made.source} {made.candidate}".strip() if made else "",
    }


def _proof(problem: Problem, construction: Array) -> str:
    """How far exact arithmetic bears out that the best published value is beaten."""
    best = problem.best_published
    assert best is not None, "there is a margin over it"
    try:
        proved = prove(problem, candidate_of(problem, construction)).beats(problem, best)
    except Rejected as error:
        return f"none: {error}"
    return "exact" if proved else "none: within the rounding of what was published"


def _cell(key: str, row: Mapping[str, object]) -> str:
    value = row["printed" if key == "best known" else key]
    if isinstance(value, float):
        return f"{value:+.3e}" if key == "margin" else f"{value:.11g}"
    return "" if value is None else str(value)


# --- verify ------------------------------------------------------------------------------------


def verify_text(file: Path, name: str, *, keep: bool, folder: Path = FOLDER) -> str:
    """The value and what it means; raises `UserError` where the verifiers refuse the file."""
    try:
        candidate = parse(file.read_text(encoding="utf-8"))
        problem = _problem_of(file, candidate, name)
        found = verify(problem, candidate)
    except OSError as error:
        raise UserError(str(file), "a file that can be read", str(error)) from error
    except (Rejected, UnicodeDecodeError) as error:
        said = f"one that is refused: {error}"
        raise UserError(str(file), "a construction that the arena accepts", said) from error
    lines = [
        f"{problem.name}: {found.value!r} ({problem.direction})",
        f"direct {found.value!r}, FFT or vectorised {found.fast!r}",
    ]
    lines += _compared(problem, found.value, found.given)
    if keep:
        made = Provenance(source=file.name, when=time.time())
        entered = Archive(folder).enter(problem.name, found, made)
        lines.append("entered into the archive" if entered else "not better than the archive's")
    return "\n".join(lines)


def _compared(problem: Problem, value: float, given: Array) -> list[str]:
    """The margin over the best known value, and whether it is enough and proved."""
    best = problem.best_published
    if best is None:
        return []
    gain, asked = problem.gain(value, over=best.value), problem.minimum_improvement
    enough = "enough" if gain >= asked and gain > 0 else "not enough"
    asks = f"the arena asks for {asked:g}: {enough}" if asked else "any gain is enough"
    proof = [f"proof that it is better: {_proof(problem, given)}"] if gain > 0 else []
    return [f"against {best.who} ({best.printed}): {gain:+.3e}; {asks}", *proof]


def _problem_of(file: Path, candidate: object, name: str) -> Problem:
    known = problems()
    stated = candidate.get("problem") if isinstance(candidate, dict) else None
    wanted = name or stated
    if not wanted:
        raise ConfigError(
            f"problem of {file}", "--problem NAME, or a key 'problem' in the file", "neither"
        )
    if not isinstance(wanted, str) or wanted not in known:
        raise ConfigError("problem", f"one of {', '.join(known)}", repr(wanted))
    return known[wanted]


# --- export ------------------------------------------------------------------------------------


def export_text(
    name: str,
    *,
    to: Path | None = None,
    plot: Path | None = None,
    folder: Path = FOLDER,
    runs: Sequence[Path] = RUNS,
) -> str:
    """The best construction as the arena's JSON, or where it was written. The JSON names its
    problem too, so that `milo arena verify` needs nothing more (the arena reads its own key only).
    """
    known = problems()
    if name not in known:
        raise ConfigError("problem", f"one of {', '.join(known)}", repr(name))
    best = gathered(folder, runs).archive.best(name)
    if best is None:
        raise UserError(f"archive {folder}", f"a record of {name}", "none")
    candidate = candidate_of(known[name], best.construction)
    text = json.dumps({"problem": name, **candidate})
    if plot is not None:
        # Drawn is what the verifiers read of it, as the start is.
        shown = known[name].read(candidate[known[name].field])
        plot.write_text(drawing(known[name], _start(best), shown), encoding="utf-8")
    if to is None:
        return text
    to.write_text(text + "\n", encoding="utf-8")
    drawn = [f"drawn in {plot}"] if plot is not None else []
    margin = _compared(known[name], best.value, best.construction)
    return "\n".join([f"{name} at {best.value!r} written to {to}", *margin, *drawn])


def _start(best: Best) -> Array | None:
    """The frozen construction of the record's task; None for a record without a task."""
    index = best.provenance.task.rpartition("-")[2]
    if not index.isdigit():
        return None
    return start_of(problems()[best.problem], int(index)).construction
