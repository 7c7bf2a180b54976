"""Short words that give a task away: its ids, expected values, and hashes of its instruction.

One short value may be chance, so it counts only beside those of several other tasks: that is a
table of answers.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from milo.core.task import Task
from milo.core.tree import FileTree

WORD = re.compile(r"[a-z0-9]+")
ID_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*[A-Za-z0-9]|[A-Za-z0-9]")
HEX = re.compile(r"[0-9a-f]{12,}")
JOINERS = re.compile(r"[-_.]+")
RARE_LENGTH = 12
SHORT_LENGTH = 4
TABLE = 4
"""Tasks whose short values together are a table of answers."""
MANY = 200
"""A task whose hidden files hold more such values holds data: they are no answers."""
PREFIX = 12
HASHES = ("md5", "sha1", "sha256", "blake2b")


class Fingerprints:
    """The telling words of all tasks, indexed once."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._ids = {task.id: task.id for task in tasks if _is_telling(task.id)}
        self._loose = {_loosely(task.id): task.id for task in tasks if len(task.id) >= 8}
        self._hashes = {h: task.id for task in tasks for h in _hashes(task)}
        values = [(task, _hidden_values(task)) for task in tasks]
        self._rare = _only_one((t, {v for v in vs if _is_rare(v)}) for t, vs in values)
        short = [(t, {v for v in vs if _is_short(v)}) for t, vs in values]
        self._short = _only_one((t, vs) for t, vs in short if len(vs) <= MANY)

    def named(self, text: str) -> Iterator[tuple[str, str]]:
        """(task, what matched) for every word of a line that gives a task away by itself."""
        for word in ID_WORD.findall(text):
            for part in sorted({word, *word.split("/"), word.rpartition(".")[0]}):
                task = self._ids.get(part) or self._loose.get(_loosely(part))
                if task is not None:
                    yield task, f"the id {part!r}"
        for token in WORD.findall(text.lower()):
            if token in self._rare:
                yield self._rare[token], f"the value {token!r}"
            hashed = token[:PREFIX] if HEX.fullmatch(token) else token
            if hashed in self._hashes:
                yield self._hashes[hashed], f"a hash of the instruction, {token!r},"

    def short_values(self, text: str) -> Iterator[tuple[str, str]]:
        """(task, value) for every short expected value in a line."""
        for token in WORD.findall(text.lower()):
            if token in self._short:
                yield self._short[token], token


def texts_of(tree: FileTree) -> Iterator[str]:
    """The files of a tree as texts."""
    for path in tree:
        yield tree.text(path)


def hidden_texts(task: Task) -> Iterator[str]:
    """The texts of a task that no harness sees: tests and solutions, those of its steps too."""
    steps = [tree for step in task.steps for tree in (step.tests, step.solution)]
    for tree in (task.tests, task.solution, *steps):
        yield from texts_of(tree)


def _is_telling(task_id: str) -> bool:
    """An id of few letters alone is a word that any program may hold ("sort")."""
    return len(task_id) >= 8 or not task_id.isalpha()


def _loosely(word: str) -> str:
    """An id whatever its case and joiners."""
    return JOINERS.sub("-", word.lower()) if len(word) >= 8 else ""


def _hashes(task: Task) -> Iterator[str]:
    """Hexadecimal hashes of the instruction by their beginning, and its checksum whole."""
    for text in {task.instruction, task.instruction.strip()}:
        data = text.encode()
        yield from (hashlib.new(name, data).hexdigest()[:PREFIX] for name in HASHES)
        checksum = zlib.crc32(data)
        yield from (str(checksum), f"{checksum:08x}", f"0x{checksum:x}")
    yield task.digest[:PREFIX]


def _hidden_values(task: Task) -> set[str]:
    """Words with a digit that the hidden files hold and nothing that a harness sees does."""
    seen = {*_values([task.instruction]), *_values(texts_of(task.workspace))}
    return _values(hidden_texts(task)) - seen


def _values(texts: Iterable[str]) -> set[str]:
    words = {word for text in texts for word in WORD.findall(text.lower())}
    return {word for word in words if len(word) >= SHORT_LENGTH and not word.isalpha()}


def _is_rare(value: str) -> bool:
    return len(value) >= RARE_LENGTH and not value.isdigit()


def _is_short(value: str) -> bool:
    return not _is_rare(value)


def _only_one(values_of: Iterable[tuple[Task, set[str]]]) -> Mapping[str, str]:
    """Each value that one task alone holds, with that task."""
    holders: dict[str, set[str]] = {}
    for task, values in values_of:
        for value in values:
            holders.setdefault(value, set()).add(task.id)
    return {value: next(iter(ids)) for value, ids in holders.items() if len(ids) == 1}
