"""The generality check: a candidate may hold no task-specific logic (SPEC §6).

Only the source lines that a child adds are scanned (lines that some parent has anywhere are not
new), as they stand and as what they make once they run (`unfolding`). The kinds of hit:

* a **task id**, as a whole word, whatever its case and joiners; ids of letters alone and under
  eight characters are left out, since they are words that any program may hold ("sort");
* a **hash** of a task's instruction, which names the task as its id does;
* a **word run**: at least eight consecutive words shared with a task's instruction, verifier or
  reference files. Words are runs of letters and digits, in lower case, so that quoting, line
  breaks and punctuation hide nothing;
* **scattered words**: six or more runs of five words that one task's instruction alone has, in one
  file;
* a **rare value** of at least twelve characters, letters and digits mixed, that only one task's
  verifier or reference files hold and its instruction and workspace don't: an expected value;
* a **table of answers**: shorter such values, with a digit, of four or more tasks;
* **data that nobody can read**: a file that is no text, or a long stretch of encoded data that is
  none when it is decoded.

With more than ten tasks, runs that occur in more than half of them are left out: stock lines of
test scripts, and what a suite tells every solver. Import lines and shebangs never count: honest
programs share them. One short answer can't be told from chance.

Hits of tasks that are held out are shown to the run's owner in full; a mutator learns only where
they are, for it may know neither those tasks' names nor their words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from milo.core.task import Task
from milo.core.tree import FileTree
from milo.search.fingerprints import TABLE, WORD, Fingerprints, hidden_texts, texts_of
from milo.search.unfolding import as_text, made_by_code, opaque, unpacked

RUN = 8
COMMON_FROM = 10
PIECE = 5
PIECES = 6
SHOWN_VALUES = 6
STOCK = re.compile(r"\s*(#!|import\s|from\s+\S+\s+import\b)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One task-specific line: where it is, which task it names and what matched.

    `task` is "" where no one task is named; `held_out` says that it is none to search on.
    """

    file: str
    line: int
    task: str
    matched: str
    held_out: bool = False

    def __str__(self) -> str:
        whose = f" of task {self.task}" if self.task else ""
        return f"{self.file}:{self.line} holds {self.matched}{whose}"

    @property
    def public(self) -> str:
        """The hit in the words that a mutator may read."""
        if not self.held_out:
            return str(self)
        return f"{self.file}:{self.line} holds what belongs to a task that is held out"


class _Line(NamedTuple):
    file: str
    number: int
    text: str


class GeneralityIndex:
    """The tasks' words, indexed once; scanning a child then costs its added words only.

    `held_out` are ids of tasks that mutators know nothing of.
    """

    def __init__(self, tasks: Sequence[Task], held_out: Collection[str] = ()) -> None:
        self._held_out = frozenset(held_out)
        self._words = Fingerprints(tasks)
        self._runs = _common_removed(
            ((task.id, _runs_of_texts(_material(task), RUN)) for task in tasks), len(tasks)
        )
        asked = [(task.id, _runs_of_texts([task.instruction], PIECE)) for task in tasks]
        self._pieces = _of_one_task(asked)

    def scan(self, parents: Iterable[FileTree], child: FileTree) -> tuple[Hit, ...]:
        """Hits in lines that no parent has; in file and line order, each once."""
        trees = tuple(parents)
        known = {line for parent in trees for line in _lines(parent)}
        hits = list(self._unreadable(trees, child, known))
        table: dict[str, tuple[str, _Line]] = {}
        for path in child:
            pieces: dict[str, dict[str, _Line]] = {}
            for block in (*_blocks(path, child, known), *_made(path, child, known)):
                hits.extend(hit for line in block for hit in self._named(line))
                hits.extend(self._shared(block))
                self._collect(block, pieces, table)
            hits.extend(self._scattered(pieces, {hit.task for hit in hits}))
        hits.extend(self._table(table))
        return tuple(sorted(set(hits), key=lambda hit: (hit.file, hit.line, hit.matched)))

    def _hit(self, line: _Line, task: str, matched: str) -> Hit:
        held = task in self._held_out
        return Hit(file=line.file, line=line.number, task=task, matched=matched, held_out=held)

    def _named(self, line: _Line) -> Iterator[Hit]:
        for task, matched in self._words.named(line.text):
            yield self._hit(line, task, matched)

    def _shared(self, block: Sequence[_Line]) -> Iterator[Hit]:
        words = [(word, line) for line in block for word in _words(line.text)]
        end = 0
        for start in range(len(words) - RUN + 1):
            run = " ".join(word for word, _ in words[start : start + RUN])
            if run in self._runs and start >= end:
                end = start + RUN
                yield self._hit(words[start][1], self._runs[run], f"the words {run!r}")

    def _collect(
        self,
        block: Sequence[_Line],
        pieces: dict[str, dict[str, _Line]],
        table: dict[str, tuple[str, _Line]],
    ) -> None:
        """Note what tells only beside more of its kind: short runs by task, short values."""
        words = [(word, line) for line in block for word in _words(line.text)]
        for start in range(len(words) - PIECE + 1):
            piece = " ".join(word for word, _ in words[start : start + PIECE])
            if piece in self._pieces:
                pieces.setdefault(self._pieces[piece], {}).setdefault(piece, words[start][1])
        for line in block:
            for task, value in self._words.short_values(line.text):
                table.setdefault(task, (value, line))

    def _scattered(
        self, pieces: Mapping[str, Mapping[str, _Line]], named: Collection[str]
    ) -> Iterator[Hit]:
        for task, found in pieces.items():
            if len(found) >= PIECES and task not in named:
                words, line = next(iter(found.items()))
                yield self._hit(line, task, f"the scattered words {words!r} …")

    def _table(self, table: Mapping[str, tuple[str, _Line]]) -> Iterator[Hit]:
        if len(table) < TABLE:
            return
        line = min((line for _, line in table.values()), key=lambda one: (one.file, one.number))
        held = any(task in self._held_out for task in table)
        shown = ", ".join(repr(value) for value, _ in list(table.values())[:SHOWN_VALUES])
        matched = f"expected values of {len(table)} tasks ({shown})"
        yield Hit(file=line.file, line=line.number, task="", matched=matched, held_out=held)

    def _unreadable(
        self, parents: Sequence[FileTree], child: FileTree, known: Collection[str]
    ) -> Iterator[Hit]:
        for path, file in child.items():
            if any(parent.get(path) == file for parent in parents) or not file.data:
                continue
            if as_text(file.data) is None:
                yield self._hit(_Line(path, 1, ""), "", "data that nobody can read")
                continue
            for number, line in enumerate(child.text(path).splitlines(), start=1):
                if line.strip() not in known and opaque(line):
                    yield self._hit(_Line(path, number, ""), "", "encoded data that is no text")


def scan(parent: FileTree | None, child: FileTree, tasks: Sequence[Task]) -> tuple[Hit, ...]:
    """Scan one child against tasks; build a `GeneralityIndex` once to scan many."""
    return GeneralityIndex(tasks).scan([] if parent is None else [parent], child)


def _material(task: Task) -> Iterator[str]:
    yield task.instruction
    yield from hidden_texts(task)


def _words(line: str) -> list[str]:
    return [] if STOCK.match(line) else WORD.findall(line.lower())


def _runs_of_texts(texts: Iterable[str], length: int) -> set[str]:
    runs: set[str] = set()
    for text in texts:
        words = [word for line in text.splitlines() for word in _words(line)]
        runs.update(" ".join(words[i : i + length]) for i in range(len(words) - length + 1))
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


def _of_one_task(runs_of: Iterable[tuple[str, set[str]]]) -> Mapping[str, str]:
    """The runs that one task alone holds, with that task."""
    first: dict[str, str] = {}
    shared: set[str] = set()
    for task, runs in runs_of:
        for run in runs:
            if first.setdefault(run, task) != task:
                shared.add(run)
    return {run: task for run, task in first.items() if run not in shared}


def _lines(tree: FileTree) -> Iterator[str]:
    for text in texts_of(tree):
        yield from (line.strip() for line in text.splitlines())


def _blocks(path: str, child: FileTree, known: set[str]) -> Iterator[list[_Line]]:
    """Runs of consecutive new lines of a file; lines without words don't interrupt one."""
    block: list[_Line] = []
    for number, text in enumerate(_text(path, child).splitlines(), start=1):
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


def _made(path: str, child: FileTree, known: set[str]) -> Iterator[list[_Line]]:
    """The texts that new lines of a file make, and the file's own name."""
    lines = _text(path, child).splitlines()
    fresh = [line.strip() not in known for line in lines]
    if any(fresh):
        yield [_Line(path, 1, path)]
    for number, text in enumerate(lines, start=1):
        if fresh[number - 1]:
            for inner in unpacked(text):
                yield [_Line(path, number, part) for part in inner.splitlines()]
    if path.endswith(".py"):
        for made in made_by_code("\n".join(lines)):
            if any(fresh[made.line - 1 : made.last]):
                yield [_Line(path, made.line, part) for part in made.text.splitlines()]


def _text(path: str, child: FileTree) -> str:
    """The text of a file, unpacked where it is packed."""
    return as_text(child[path].data) or child.text(path)
