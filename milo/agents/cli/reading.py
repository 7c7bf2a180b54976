"""What a coding agent says of itself: its usage, its errors, its last words.

All of it is read for people, and to be compared with the gateway's own count: what counts is the
gateway's usage and the tree that was left.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from milo.agents.cli.description import Selection, UsageReading, Words
from milo.core.attempt import Usage
from milo.core.tree import FileTree

WORD_CHARS = 600


def usage_said(reading: UsageReading, stdout: str, logs: FileTree) -> Usage | None:
    """The usage that the program reports; None where it reports none."""
    found = [usage for item in _chosen(reading, stdout, logs) if (usage := _usage(reading, item))]
    if not found:
        return None
    return found[-1] if reading.take == "last" else sum(found[1:], found[0])


def error_said(readings: Sequence[Words], stdout: str, logs: FileTree) -> str:
    """The last error that the program reports; "" where it reports none."""
    for reading in readings:
        if any(True for _ in _chosen(reading, stdout, logs)):
            return words_said(reading, stdout, logs) or "an error without words"
    return ""


def words_said(reading: Words, stdout: str, logs: FileTree) -> str:
    """The last text at the reading's place, cut to a line's length; "" where there is none."""
    said = ""
    for item in _chosen(reading, stdout, logs):
        values = " ".join(map(_text, _at(item, reading.says))) if reading.says else ""
        said = " ".join(values.split()) or said
    return said[-WORD_CHARS:]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _usage(reading: UsageReading, item: object) -> Usage | None:
    def number(path: str) -> int:
        values = list(_at(item, path)) if path else []
        return int(values[-1]) if values and isinstance(values[-1], int | float) else 0

    if not any(True for _ in _at(item, reading.input)):
        return None
    cached, written, taken = (
        number(path) for path in (reading.cached_input, reading.cache_write, reading.input)
    )
    thought = number(reading.reasoning)
    return Usage(
        uncached_input=taken - cached - written if reading.input_is_all else taken,
        cached_input=cached,
        cache_write=written,
        output=number(reading.output) + thought,
        reasoning=thought,
        calls=1,
        dollars=None,
    )


def _chosen(selection: Selection, stdout: str, logs: FileTree) -> Iterator[object]:
    for item in _objects(selection.source, stdout, logs):
        for part in _at(item, selection.each) if selection.each else (item,):
            if all(_holds(part, path, value) for path, value in selection.where.items()):
                yield part


def _holds(item: object, path: str, wanted: object) -> bool:
    return any(value == wanted and type(value) is type(wanted) for value in _at(item, path))


def _objects(source: str, stdout: str, logs: FileTree) -> Iterator[object]:
    """The entries of one JSON document (a list's own entries), or one object per line."""
    text = stdout if source == "stdout" else logs.text(source) if source in logs else ""
    try:
        document = json.loads(text)
    except ValueError:
        yield from _lines(text)
        return
    yield from document if isinstance(document, list) else (document,)


def _lines(text: str) -> Iterator[object]:
    for line in text.splitlines():
        if line.lstrip().startswith("{"):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def _at(item: object, path: str) -> Iterator[object]:
    """The values at a dotted path; ``*`` stands for every entry of a list or mapping."""
    name, _, rest = path.partition(".")
    if name == "*":
        inner = list(item.values()) if isinstance(item, Mapping) else item
        values = inner if isinstance(inner, list) else []
    elif isinstance(item, Mapping) and name in item:
        values = [item[name]]
    else:
        values = []
    for value in values:
        if rest:
            yield from _at(value, rest)
        else:
            yield value
