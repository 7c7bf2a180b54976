"""`milo view` and `milo report --html`: the replay page, served or written."""

from __future__ import annotations

import sys
import time
import webbrowser
from pathlib import Path

from milo.core.errors import RunError
from milo.store import RunReader
from milo.views.page_file import TRACE_BYTES, write_page
from milo.views.progress_file import live_snapshot
from milo.views.serving import LOCAL, LiveFilm, PageServer
from milo.views.text import json_ready


def write_html(path: Path, target: Path, *, trace_bytes: int = TRACE_BYTES) -> str:
    """Write a run's page to a file; what was done, in words. Raises `RunError`."""
    if target.is_dir():
        raise RunError(f"page {target}", "a file to write", "a directory")
    beside = target.with_name(f".{target.name}.part")
    try:
        with RunReader(path) as reader, beside.open("w", encoding="utf-8") as out:
            write_page(reader, out, now=time.time(), trace_bytes=trace_bytes)
        beside.replace(target)
    except OSError as error:
        why = error.strerror or str(error)
        raise RunError(f"page {target}", "a file that can be written", why) from error
    finally:
        beside.unlink(missing_ok=True)
    size = target.stat().st_size / 1e6
    return f"{target} holds the replay page of {path} ({size:.1f} MB, needs no network)"


def serve(path: Path, *, host: str = LOCAL, port: int = 0, browse: bool = True) -> int:
    """Serve a run's page until the user stops it; the exit code."""
    film = LiveFilm(path, lambda: json_ready(live_snapshot(path, time.time())), time.time)
    try:
        server = PageServer(film, host, port)
    except (OSError, OverflowError) as error:  # a port beyond what there is overflows
        raise RunError(f"address {host}:{port}", "one that is free here", str(error)) from error
    print(f"{path} is at {server.url} (Ctrl-C ends this)", flush=True)
    if host != LOCAL:
        print("anyone who can reach this address can read the run", file=sys.stderr, flush=True)
    if browse:
        webbrowser.open(server.url)
    try:
        server.serve()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()
    return 0
