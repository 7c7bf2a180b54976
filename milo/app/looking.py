"""`milo show`, `milo diff`, `milo trace`: from a run's records alone, alive or dead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from milo.app.convert import nearest
from milo.app.inspect import RunRecords, locate, unknown_candidate
from milo.core.errors import RecordError, RunError
from milo.core.harness import Harness, patch_between
from milo.core.population import Population
from milo.core.tree import FileTree
from milo.store import RunReader
from milo.views.concluding import build_report
from milo.views.dossier import AttemptLine, Dossier, dossier_of
from milo.views.rendering import print_sections
from milo.views.report import Place
from milo.views.sections import Section, sections_of
from milo.views.showing import (
    Side,
    attempts_table,
    candidate_sections,
    candidate_view,
    difference_of,
    difference_sections,
    sessions_section,
    trace_text,
)
from milo.views.text import json_ready

OVERVIEW = ("All candidates", "Orchestrator", "Validated Pareto front")


def show(path: Path, candidate: str, *, as_json: bool) -> None:
    """Print one candidate in full, or the list of them all where none is named."""
    with RunReader(path) as reader:
        if not candidate:
            report = build_report(RunRecords(reader), Place(run=str(path)))
            shown = [s for s in sections_of(report) if s.title in OVERVIEW]
            _print(shown, report.candidates, as_json=as_json)
            return
        population = reader.population()
        name = known_candidate(population, candidate, path)
        view = candidate_view(population, dossier_of(reader, population, name))
    _print(candidate_sections(view), view, as_json=as_json)


def diff(a: str, b: str, runs_dir: Path, *, as_json: bool) -> None:
    """Print what two harnesses differ in; raises `RunError` for a name that means none."""
    first = _named(a, runs_dir, None)
    second = _named(b, runs_dir, first.run)
    found = difference_of(first.side, second.side, patch_between(first.tree, second.tree))
    _print(difference_sections(found), found, as_json=as_json)


def trace(path: Path, attempt: str, *, as_json: bool) -> None:
    """Print the trace of an attempt, or of a session of a mutator or the orchestrator, paged on a
    terminal; a candidate alone lists its attempts, nothing the sessions."""
    candidate, _, task = attempt.partition(":")
    with RunReader(path) as reader:
        if not attempt:
            scopes = tuple(reader.sessions)
            _print([sessions_section(scopes)], scopes, as_json=as_json)
            return
        session = reader.sessions.get(attempt)
        if session is not None:
            found, line = reader.traces.get(session), None
        else:
            population = reader.population()
            name = known_candidate(population, candidate, path)
            dossier = dossier_of(reader, population, name)
            if not task:
                _print([attempts_table(name, dossier.attempts)], dossier.attempts, as_json=as_json)
                return
            line = _attempt(dossier, task)
            if not line.trace:
                raise RunError(f"attempt {attempt}", "one with a trace on record", "none")
            found = reader.traces.get(line.trace)
    if as_json:
        _say(json.dumps(json_ready({"attempt": line, "trace": found}), indent=2, sort_keys=True))
        return
    console = Console()
    words = Text(trace_text(attempt, line, found))
    if console.is_terminal:
        with console.pager():
            console.print(words)
    else:
        console.print(words, soft_wrap=True)


def known_candidate(population: Population, wanted: str, path: Path) -> str:
    """A candidate of the run; raises `RunError` with the nearest."""
    if wanted in population.lineage:
        return wanted
    raise unknown_candidate(wanted, [node.candidate for node in population.lineage], path)


def _attempt(dossier: Dossier, task: str) -> AttemptLine:
    for attempt in dossier.attempts:
        if task in (attempt.key, f"{attempt.key}#0"):
            return attempt
    known = [attempt.key for attempt in dossier.attempts]
    meant = nearest(task, known)
    candidate = dossier.candidate
    hint = (
        f"such as {candidate}:{meant}" if meant else f"as `milo trace RUN {candidate}` lists them"
    )
    raise RunError(f"attempt {task!r}", f"one of {candidate}, {hint}", "an unknown one")


class Named(NamedTuple):
    """A harness by the name that was given; `run` where it is a candidate's."""

    side: Side
    tree: FileTree
    run: Path | None = None


def _named(word: str, runs_dir: Path, run: Path | None) -> Named:
    if (Path(word) / "harness.toml").is_file():
        return Named(Side(name=word), Harness.from_dir(Path(word)).tree)
    place, colon, candidate = word.rpartition(":")
    if not colon:
        inside = run is not None and _has(run, word)
        place, candidate = (str(run), word) if inside else (word, "")
    path = _located(place, runs_dir, run)
    with RunReader(path) as reader:
        population = reader.population()
        if not candidate and population.winner is None:
            raise RunError(f"run {path}", "a winner, or RUN:CANDIDATE", "none frozen yet")
        won = population.winner.candidate if population.winner else ""
        name = known_candidate(population, candidate or won, path)
        try:
            tree = reader.harnesses.tree(name)
        except RecordError as error:
            raise RunError(f"candidate {name}", "a harness on record", str(error)) from error
    started = population.started
    side = Side(
        name=f"{path}:{name}",
        node=population.lineage[name],
        model=started.model if started else "",
        tasks=started.tasks if started else {},
    )
    return Named(side, tree, path)


def _located(place: str, runs_dir: Path, run: Path | None) -> Path:
    """The run that is meant; a word that means none may have been meant for a candidate."""
    try:
        return locate(place, runs_dir)
    except RunError as error:
        if run is None:
            raise
        expected = f"a harness's directory, a run, or a candidate of {run} (`milo show` lists them)"
        raise RunError(f"harness {place!r}", expected, error.found) from error


def _has(run: Path, candidate: str) -> bool:
    with RunReader(run) as reader:
        return candidate in reader.population().lineage


def _print(sections: Sequence[Section], data: object, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps(json_ready(data), indent=2, sort_keys=True, allow_nan=False))
    else:
        print_sections(sections, Console())


def _say(words: str) -> None:
    print(words)
