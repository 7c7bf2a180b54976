"""What every driver of a peer shares: the start folder, and questions to MILO.

Stand-alone, standard library only. The driver is started with the gateway's address, its token and
the model's name; the folder that it starts in holds ``peer.json`` (search tasks, seed, objective,
background) and the seed harness below ``harness/``. A question is one POST to ``/peer/evaluate``:
``{"files": {path: text}, "tasks": [id, …], "note": "…"}``, where the files are laid over the seed
harness. The answer has ``refused`` ("" where the candidate was run), ``scores`` and ``feedback`` by
task, and the means ``accuracy``, ``tokens`` and ``seconds``.
"""

from __future__ import annotations

import http.client
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

FILE = "# ===== file: "
END = " ====="


class Place(NamedTuple):
    """Where the gateway is, and what the driver calls itself there."""

    base_url: str
    token: str
    model: str


class Peer:
    """MILO as a driver sees it."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.about: dict[str, Any] = json.loads((folder / "peer.json").read_text())
        self.tasks: list[str] = self.about["tasks"]
        self.seed: int = self.about["seed"]
        self.objective: str = self.about["objective"]
        self.background: str = self.about["background"]
        self.files = {name: (folder / "harness" / name).read_text() for name in self.about["files"]}

    def evaluate(
        self, files: dict[str, str], tasks: list[str] | None = None, note: str = ""
    ) -> dict[str, Any]:
        """Score a candidate, on all search tasks where none are named; waits for the scores."""
        return self._post(
            "/peer/evaluate",
            {"files": files, "tasks": self.tasks if tasks is None else tasks, "note": note},
        )

    def ask(self, prompt: str | list[dict[str, Any]]) -> str:
        """One call to the model that proposes; the reply's text."""
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        body = {"model": self.place.model, "messages": messages}
        return self._post("/v1/chat/completions", body)["choices"][0]["message"]["content"] or ""

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection(urlsplit(self.place.base_url).netloc)
        try:
            headers = {
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self.place.token}",
            }
            connection.request("POST", path, json.dumps(body), headers)
            reply = connection.getresponse()
            text = reply.read().decode()
        finally:
            connection.close()
        if reply.status != 200:
            raise RuntimeError(f"{path} answered {reply.status}: {text[:500]}")
        answer: dict[str, Any] = json.loads(text)
        return answer


PLACE = "place.json"


def started() -> Peer:
    """The peer that this process drives, from its command line and the folder it starts in."""
    place = Place(*sys.argv[1:4])
    Path(PLACE).write_text(json.dumps(place))
    return Peer(place, Path.cwd())


def joined() -> Peer:
    """The same in a process that the driver's package has started, in the driver's folder."""
    return Peer(Place(*json.loads(Path(PLACE).read_text())), Path.cwd())


def bundled(files: dict[str, str]) -> str:
    """Files as one Python text, for methods that evolve one program; one file stays as it is."""
    if len(files) == 1:
        return next(iter(files.values()))
    parts = (f"{FILE}{name}{END}\n{with_end(text)}" for name, text in sorted(files.items()))
    return "".join(parts)


def unbundled(text: str, files: dict[str, str]) -> dict[str, str]:
    """The files of a bundle; raises `ValueError` where its marks don't name those of `files`."""
    if len(files) == 1:
        return {next(iter(files)): text}
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        mark = line.strip()
        if mark.startswith(FILE) and mark.endswith(END):
            name = mark.removeprefix(FILE).removesuffix(END)
            found[name] = []
        elif name:
            found[name].append(line)
    if set(found) != set(files):
        raise ValueError(f"the marks name the files {sorted(found)}, not {sorted(files)}")
    return {name: "".join(lines) for name, lines in found.items()}


def with_end(text: str) -> str:
    """The text with an end to its last line."""
    return text if text.endswith("\n") or not text else f"{text}\n"


def judged(peer: Peer, program: str) -> dict[str, Any]:
    """MILO's answer on a bundle; one that is none is refused as a candidate would be."""
    try:
        files = unbundled(program, peer.files)
    except ValueError as error:
        return {"refused": str(error), "accuracy": 0.0, "tokens": 0.0, "seconds": 0.0}
    return peer.evaluate(files)


def worst(answer: dict[str, Any], limit: int) -> str:
    """Why a candidate was refused, or its attempts on the tasks that it did worst on, in words."""
    if answer["refused"]:
        return f"refused before any task was run: {answer['refused']}"
    scores = answer["scores"]
    text = "\n\n".join(answer["feedback"][task] for task in sorted(scores, key=scores.get))
    return text[:limit]
