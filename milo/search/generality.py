"""The generality check: a candidate may hold no task-specific logic (SPEC §6).

Only the source lines that a child adds are scanned (lines that some parent has anywhere are not
new). Three kinds of hit:

* a **task id**, as a whole word; ids of letters alone and under eight characters are left out,
  since they are words that any program may hold ("sort");
* a **word run**: at least eight consecutive words shared with a task's instruction, verifier or
  reference files. Words are runs of letters and digits, in lower case, so that quoting, line
  breaks and punctuation hide nothing;
* a **rare token** of at least twelve characters, letters and digits mixed, that only one task's
  verifier or reference files hold and its instruction and workspace don't: an expected value.

With more than ten tasks, runs that occur in more than half of them are left out: stock lines of
test scripts, and what a suite tells every solver. Import lines and shebangs never count: honest
programs share them. Shorter answers can't be told from chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from milo.core.task import Task
from milo.core.tree import FileTree

RUN = 8
COMMON_FROM = 10
RARE_LENGTH = 12
WORD = re.compile(r"[a-z0-9]+")
STOCK = re.compile(r"\s*(#!|import\s|from\s+\S+\s+import\b)")
ID_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*[A-Za-z0-9]|[A-Za-z0-9]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One task-specific line: where it is, which task it names and what matched."""

    file: str
    line: int
    task: str
    matched: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} holds {self.matched} of task {self.task}"


class _Line(NamedTuple):
    file: str
    number: int
    text: str


class GeneralityIndex:
    """The tasks' words, indexed once; scanning a child then costs its added words only."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._ids = {task.id: task.id for task in tasks if _is_telling(task.id)}
        self._runs = _common_removed(
            ((task.id, _runs_of_texts(_material(task))) for task in tasks), len(tasks)
        )
        self._rare = _rare_tokens(tasks)

    def scan(self, parents: Iterable[FileTree], child: FileTree) -> tuple[Hit, ...]:
        """Hits in lines that no parent has; one per line and kind, in file and line order."""
        known = {line for parent in parents for line in _lines(parent)}
        hits: list[Hit] = []
        for block in _blocks(child, known):
            for line in block:
                hits.extend(self._named(line))
            hits.extend(self._shared(block))
        return tuple(sorted(hits, key=lambda hit: (hit.file, hit.line, hit.matched)))

    def _named(self, line: _Line) -> Iterator[Hit]:
        for word in ID_WORD.findall(line.text):
            for part in {word, *word.split("/")}:
                if part in self._ids:
                    yield _hit(line, self._ids[part], f"the id {part!r}")
        for token in WORD.findall(line.text.lower()):
            if token in self._rare:
                yield _hit(line, self._rare[token], f"the value {token!r}")

    def _shared(self, block: Sequence[_Line]) -> Iterator[Hit]:
        words = [(word, line) for line in block for word in _words(line.text)]
        end = 0
        for start in range(len(words) - RUN + 1):
            run = " ".join(word for word, _ in words[start : start + RUN])
            if run in self._runs and start >= end:
                end = start + RUN
                yield _hit(words[start][1], self._runs[run], f"the words {run!r}")


def scan(parent: FileTree | None, child: FileTree, tasks: Sequence[Task]) -> tuple[Hit, ...]:
    """Scan one child against tasks; build a `GeneralityIndex` once to scan many."""
    return GeneralityIndex(tasks).scan([] if parent is None else [parent], child)


def _hit(line: _Line, task: str, matched: str) -> Hit:
    return Hit(file=line.file, line=line.number, task=task, matched=matched)


def _is_telling(task_id: str) -> bool:
    return len(task_id) >= 8 or not task_id.isalpha()


def _texts(tree: FileTree) -> Iterator[str]:
    for path in tree:
        yield tree.text(path)


def _material(task: Task) -> Iterator[str]:
    yield task.instruction
    yield from _texts(task.tests)
    yield from _texts(task.solution)


def _words(line: str) -> list[str]:
    return [] if STOCK.match(line) else WORD.findall(line.lower())


def _runs_of_texts(texts: Iterable[str]) -> set[str]:
    runs: set[str] = set()
    for text in texts:
        words = [word for line in text.splitlines() for word in _words(line)]
        runs.update(" ".join(words[i : i + RUN]) for i in range(len(words) - RUN + 1))
    return runs


def _common_removed(runs_of: Iterable[tuple[str, set[str]]], n_tasks: int) -> Mapping[str, str]:
    """Each run with the first task that holds it, without those of more than half of the tasks."""
    first: dict[str, str] = {}
    count: dict[str, int] = {}
    for task, runs in runs_of:
        for run in runs:
            first.setdefault(run, task)
            count[run] = count.get(run, 0) + 1
    if n_tasks <= COMMON_FROM:
        return first
    return {run: task for run, task in first.items() if count[run] <= n_tasks / 2}


def _rare_tokens(tasks: Sequence[Task]) -> Mapping[str, str]:
    holders: dict[str, set[str]] = {}
    for task in tasks:
        shown = {*_long_tokens([task.instruction]), *_long_tokens(_texts(task.workspace))}
        hidden = [*_texts(task.tests), *_texts(task.solution)]
        for token in _long_tokens(hidden) - shown:
            holders.setdefault(token, set()).add(task.id)
    return {token: next(iter(ids)) for token, ids in holders.items() if len(ids) == 1}


def _long_tokens(texts: Iterable[str]) -> set[str]:
    return {
        token
        for text in texts
        for token in WORD.findall(text.lower())
        if len(token) >= RARE_LENGTH and not token.isalpha() and not token.isdigit()
    }


def _lines(tree: FileTree) -> Iterator[str]:
    for text in _texts(tree):
        yield from (line.strip() for line in text.splitlines())


def _blocks(child: FileTree, known: set[str]) -> Iterator[list[_Line]]:
    """Runs of consecutive new lines, file by file; lines without words don't interrupt one."""
    for path in child:
        block: list[_Line] = []
        for number, text in enumerate(child.text(path).splitlines(), start=1):
            if not WORD.search(text.lower()):
                continue
            if text.strip() in known:
                if block:
                    yield block
                block = []
            else:
                block.append(_Line(path, number, text))
        if block:
            yield block
