"""Serves the replay page of one run on this machine, and follows the run while it goes on."""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from milo.core.errors import MiloError, RecordError
from milo.store import RunPaths, RunReader
from milo.store.journal import JournalMark, JournalReader
from milo.views.dossier import dossier_of, public_trace
from milo.views.film import FilmFold
from milo.views.objective_look import ObjectiveLook
from milo.views.page_file import shell_of
from milo.views.progress_file import is_driven
from milo.views.text import json_ready

LOCAL = "127.0.0.1"


class LiveFilm:
    """The film of a run directory as it grows. Threads may ask at once; one at a time is served.
    Raises `MiloError` or `OSError` where the run can't be read.

    `live` gives the newest snapshot of the running search as JSON-ready data, None where there
    is none; `now` the time in seconds since the epoch.
    """

    def __init__(self, path: Path, live: Callable[[], object], now: Callable[[], float]) -> None:
        self._path = path
        self._live = live
        self._now = now
        self._lock = threading.Lock()
        self._fold = FilmFold()
        self._look = ObjectiveLook()
        self._frames: list[str] = []
        self._mark = JournalMark()
        self._size = -1
        with RunReader(path) as reader:
            self.name = reader.name
        self._catch_up()

    def film(self, start: int) -> bytes:
        """Frames from a number on, as the page asks for them."""
        with self._lock:
            self._catch_up()
            frames = ",".join(self._frames[max(0, start) :])
        with RunReader(self._path) as reader:
            alive = is_driven(reader, self._now())
        rest = json.dumps({"alive": alive, "run": self.name, "live": self._live()})
        return f'{{"frames":[{frames}],{rest[1:]}'.encode()

    def details(self, candidate: str) -> bytes | None:
        """One candidate's dossier, None where it is unknown."""
        with self._lock:
            self._catch_up()
            if candidate not in self._fold.population.lineage:
                return None
            with RunReader(self._path) as reader:
                found = dossier_of(reader, self._fold.population, candidate)
        return json.dumps(json_ready(found), allow_nan=False).encode()

    def trace(self, digest: str) -> bytes | None:
        """A trace by its hash, None where it is unknown."""
        with RunReader(self._path) as reader:
            try:
                found = reader.traces.get(digest)
            except RecordError:
                return None
        return json.dumps(public_trace(found), allow_nan=False).encode()

    def _catch_up(self) -> None:
        """Fold what the journal gained; what was folded is not read again, since a page asks every
        second, and a large run takes one to be read."""
        path = RunPaths(self._path).journal
        size = path.stat().st_size
        if size == self._size:
            return
        journal = JournalReader(path, self._mark)
        with RunReader(self._path) as reader:
            objectives = partial(self._look.of, reader)
            for record in journal.records():
                frame = self._fold.apply(record, objectives)
                self._frames.append(json.dumps(frame, separators=(",", ":"), allow_nan=False))
                if record.seq + 1 == journal.next_seq:  # the last of its group
                    self._mark = JournalMark(journal.next_seq, journal.end)
        self._size = size


class PageServer:
    """An HTTP server for one run; `url` is where it answers once it is made."""

    def __init__(self, film: LiveFilm, host: str = LOCAL, port: int = 0) -> None:
        """Bind; raises `OSError` where the port is taken."""
        page = shell_of(film.name, source="served").encode()
        handler = type("Handler", (_Handler,), {"film": film, "page": page, "host": host})
        self._server = _Server((host, port), handler)
        self.url = f"http://{host}:{self._server.server_port}/"

    def serve(self) -> None:
        """Answer until `stop` is called from another thread, or the process is interrupted."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """End `serve` and free the port."""
        self._server.shutdown()
        self._server.server_close()

    def close(self) -> None:
        """Free the port, where `serve` has ended by itself."""
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a browser that went away in the middle of an answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    film: LiveFilm
    page: bytes
    host: str
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer one request; nothing is ever written."""
        if not self._is_asked_here():
            self._answer(HTTPStatus.FORBIDDEN, b"", "text/plain")
            return
        try:
            body = self._found()
        except (MiloError, OSError) as error:
            words = " ".join(str(error).split()).encode()
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, words, "text/plain")
            return
        if body is None:
            self._answer(HTTPStatus.NOT_FOUND, b"", "text/plain")
        elif body is self.page:
            self._answer(HTTPStatus.OK, body, "text/html; charset=utf-8")
        else:
            self._answer(HTTPStatus.OK, body, "application/json")

    def _found(self) -> bytes | None:
        url = urlsplit(self.path)
        match unquote(url.path).split("/")[1:]:
            case [""]:
                return self.page
            case ["film"]:
                start = parse_qs(url.query).get("from", ["0"])[0]
                return self.film.film(int(start) if start.isdecimal() else 0)
            case ["details", candidate]:
                return self.film.details(candidate)
            case ["trace", digest]:
                return self.film.trace(digest)
        return None

    def _is_asked_here(self) -> bool:
        """A page of another site must not read a run through a name that it points here."""
        try:
            asked = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        except ValueError:
            asked = None
        return self.host not in (LOCAL, "localhost") or asked in (LOCAL, "localhost")

    def _answer(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        packs = "gzip" in self.headers.get("Accept-Encoding", "") and len(body) > 1400
        data = gzip.compress(body, 1) if packs else body
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if packs:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        try:
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the user."""
