"""A stand-in for wandb's server on the loopback, as far as a run's history needs one.

wandb's own client and reader talk to it, so what it holds in the end is what a user would see. It
appends lines at the offset that the client names, as the real one does: a client that starts over
at an offset already held writes over it.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HISTORY = "wandb-history.jsonl"
SUMMARY = "wandb-summary.json"


@dataclass
class Held:
    """What the server holds of one run."""

    facts: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[int, str]] = field(default_factory=dict)
    uploaded: set[str] = field(default_factory=set)

    def lines(self, name: str) -> list[str]:
        """The lines of a file in order."""
        return [line for _, line in sorted(self.files.get(name, {}).items())]

    @property
    def history(self) -> list[dict[str, Any]]:
        """The rows of the history."""
        return [json.loads(line) for line in self.lines(HISTORY)]

    @property
    def summary(self) -> dict[str, Any]:
        """The newest summary."""
        lines = self.lines(SUMMARY)
        return json.loads(lines[-1]) if lines else {}


class StandIn:
    """Runs by name, and the address under which they are written."""

    def __init__(self) -> None:
        self.runs: dict[str, Held] = {}
        self.unknown: list[str] = []
        self.url = ""

    def run(self, name: str) -> Held:
        """A run, made where it is not there yet."""
        return self.runs.setdefault(name, Held())

    def graphql(self, query: str, given: Mapping[str, Any]) -> Any:
        """The data of an answer."""
        found = re.search(r"(?:mutation|query)\s+(\w+)", query)
        match found.group(1) if found else "":
            case "ServerFeaturesQuery":
                return {"serverInfo": {"features": []}}
            case "UpsertBucket":
                return {"upsertBucket": {"bucket": self._upsert(given), "inserted": True}}
            case "RunResumeStatus":
                return {"model": self._resumed(given)}
            case "CreateRunFiles":
                return {"createRunFiles": self._places(given)}
            case "MarkRunFilesUploaded":
                return {"markRunFilesUploaded": {"success": True}}
            case name if "viewer" in query:
                return {"viewer": VIEWER, "serverInfo": {"features": []}}
            case name:
                self.unknown.append(name)
                return None

    def _upsert(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        held = self.run(given["name"])
        held.facts.update({key: value for key, value in given.items() if value is not None})
        return self._bucket(given["name"])

    def _bucket(self, name: str) -> dict[str, Any]:
        held = self.run(name)
        return {
            "id": f"id-{name}",
            "name": name,
            "displayName": held.facts.get("displayName", name),
            "description": "",
            "config": held.facts.get("config", "{}"),
            "sweepName": None,
            "project": {"id": "p", "name": "milo", "entity": {"id": "e", "name": "me"}},
            "historyLineCount": len(held.lines(HISTORY)),
        }

    def _resumed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        name = given["name"]
        model = {"id": "p", "name": "milo", "entity": {"id": "e", "name": "me"}, "bucket": None}
        if name not in self.runs:
            return model
        held = self.runs[name]
        tail = held.lines(HISTORY)[-1:]
        model["bucket"] = {
            **self._bucket(name),
            "summaryMetrics": json.dumps(held.summary),
            "logLineCount": 0,
            "eventsLineCount": len(held.lines("wandb-events.jsonl")),
            "historyTail": json.dumps(tail),
            "eventsTail": json.dumps([]),
            "tags": [],
            "notes": "",
            "wandbConfig": "{}",
        }
        return model

    def _places(self, given: Mapping[str, Any]) -> dict[str, Any]:
        files = [
            {"name": name, "uploadUrl": f"{self.url}/upload/{given['run']}/{name}"}
            for name in given["files"]
        ]
        return {"runID": f"id-{given['run']}", "uploadHeaders": [], "files": files}

    def stream(self, name: str, body: Mapping[str, Any]) -> None:
        """Take a piece of a run's files."""
        held = self.run(name)
        for file, piece in (body.get("files") or {}).items():
            lines = held.files.setdefault(file, {})
            for place, line in enumerate(piece["content"], start=piece["offset"]):
                lines[place] = line


VIEWER = {
    "id": "u",
    "entity": "me",
    "username": "me",
    "email": "me@example.invalid",
    "flags": "{}",
    "teams": {"edges": []},
    "apiKeys": {"edges": []},
}


@contextmanager
def serving() -> Iterator[StandIn]:
    """The stand-in at work in a thread of this process."""
    standing = StandIn()
    handler = type("Handler", (_Handler,), {"standing": standing})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    standing.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield standing
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    standing: StandIn
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", "0"))
        body = json.loads(self.rfile.read(size) or b"{}")
        stream = re.fullmatch(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", self.path)
        if stream:
            self.standing.stream(stream.group(1), body)
            self._answer({"limits": {}})
        elif self.path.startswith("/graphql"):
            data = self.standing.graphql(body.get("query", ""), body.get("variables") or {})
            errors = [{"message": "not here"}] if data is None else None
            self._answer({"data": data, **({"errors": errors} if errors else {})})
        else:
            self._answer({})

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        _, _, run, name = self.path.split("/", 3)
        self.standing.run(run).uploaded.add(name)
        self._answer({})

    def do_GET(self) -> None:
        self._answer({})

    def _answer(self, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
