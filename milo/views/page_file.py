"""The replay page as one self-contained file: style, scripts and the run's data inside it."""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import resources
from typing import TextIO

from milo.core.errors import RecordError
from milo.store import RunReader
from milo.views.dossier import Dossier, dossier_of, order_of_interest, public_trace
from milo.views.film import FilmFold
from milo.views.objective_look import ObjectiveLook
from milo.views.progress_file import is_driven
from milo.views.text import json_ready

SCRIPTS = (
    "numbers.js",
    "film.js",
    "data.js",
    "drawing.js",
    "lanes.js",
    "charts.js",
    "matrix.js",
    "panels.js",
    "details.js",
    "main.js",
)
CHUNK = 64
"""Candidates whose details are packed, and unpacked on a click, together."""
TRACE_BYTES = 16 * 1024 * 1024
"""Packed traces that a file holds unless it is told otherwise."""


def page_source(name: str) -> str:
    """One of the page's own files."""
    return (resources.files("milo.views") / "page" / name).read_text(encoding="utf-8")


def shell_of(title: str, *, source: str, data: str = "", more: str = "") -> str:
    """The page around its data; `source` is ``file`` or ``served``.

    `data` comes before the scripts, `more` behind them: what only a click asks for.
    """
    parts = {
        "title": html.escape(title),
        "source": source,
        "chunk": str(CHUNK),
        "connect": "'self'" if source == "served" else "'none'",
        "style": page_source("style.css"),
        "script": "\n".join(page_source(name) for name in SCRIPTS),
        "data": data,
        "more": more,
    }
    page = page_source("page.html")
    # In one pass: what is put in may itself hold something like a place to fill.
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled.append(parts[name] + rest)
    return "".join(filled)


def write_page(
    reader: RunReader, out: TextIO, *, now: float, trace_bytes: int = TRACE_BYTES
) -> None:
    """Write the whole page of a run, alive or dead, as it is on record `now` (seconds since the
    epoch).

    Traces go in by interest until `trace_bytes` are used; the page says where one is left out.
    """
    fold, look = FilmFold(), ObjectiveLook()
    objectives = partial(look.of, reader)
    frames = [fold.apply(record, objectives) for record in reader.records()]
    alive = is_driven(reader, now)
    film = {"frames": frames, "alive": alive, "run": reader.name, "live": None}
    page = shell_of(reader.name, source="file", data=_packed("film", film), more="\0")
    head, tail = page.split("\0")
    out.write(head)
    dossiers: dict[str, Dossier] = {}
    for number, chunk in enumerate(_chunks(reader, fold)):
        out.write(_packed(f"details-{number}", {c: json_ready(d) for c, d in chunk.items()}))
        dossiers.update(chunk)
    for block in _traces(reader, fold, dossiers, trace_bytes):
        out.write(block)
    out.write(tail)


def _chunks(reader: RunReader, fold: FilmFold) -> Iterator[Mapping[str, Dossier]]:
    candidates = [node.candidate for node in fold.population.lineage]
    for start in range(0, len(candidates), CHUNK):
        part = candidates[start : start + CHUNK]
        yield {c: dossier_of(reader, fold.population, c) for c in part}


def _traces(
    reader: RunReader, fold: FilmFold, dossiers: Mapping[str, Dossier], limit: int
) -> Iterator[str]:
    used, told = 0, set[str]()
    for candidate in order_of_interest(fold.population):
        for attempt in dossiers[candidate].attempts:
            if not attempt.trace or attempt.trace in told:
                continue
            told.add(attempt.trace)
            try:
                trace = public_trace(reader.traces.get(attempt.trace))
            except RecordError:
                continue
            block = _packed(f"trace-{attempt.trace}", trace)
            used += len(block)
            if used > limit:
                return
            yield block


def _packed(name: str, value: object) -> str:
    """Data as compressed text, which no HTML parser can misread."""
    data = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    text = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return f'<script type="text/plain" id="{name}">{text}</script>\n'
