"""Builds an image from a task's Dockerfile, within the task's time limit.

By the engine's first builder, whose cache is layers that go with the last image that uses them;
by BuildKit where the Dockerfile asks for that.
"""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from milo.core.dockerfile import Builder, asks_of
from milo.core.errors import MiloError
from milo.core.task import Image
from milo.core.tree import FileTree
from milo.rollout.docker.engine import Engine, EngineError
from milo.rollout.docker.job import Job, Line, finished
from milo.rollout.docker.trace import log_text

TAIL_LINES = 20
TAIL_CHARS = 2000
LABEL = "milo.image"
LAYERS = ".layers"
"""How the file ends that names the last layer of a build under way."""
TRACE = "moby.buildkit.trace"
"""How BuildKit's lines are called."""


class BuildFailed(MiloError):
    """The Dockerfile can't be built; says with which words the engine ended."""


class Building:
    """What a build has said so far, and what it would leave behind. One owner.

    `record` is a file that tells of the last layer, for whoever tidies up after our death.
    """

    def __init__(self, api: Any, record: Path) -> None:
        self._api = api
        self._record = record
        self._tail: list[str] = []

    @property
    def words(self) -> str:
        """The end of it."""
        return "".join(self._tail)[-TAIL_CHARS:]

    def note(self, line: Line) -> None:
        """Take one line of the engine's answer."""
        text = str(line.get("stream") or "")
        if line.get("id") == TRACE:
            text = log_text(base64.b64decode(str(line.get("aux") or "")))
        if text.startswith(" ---> ") and " " not in text.strip()[5:].strip():
            self._record.write_text(text.strip()[5:].strip())
        self._tail = [*self._tail, text][-TAIL_LINES:]

    def drop_rest(self) -> None:
        """Remove what a build that failed left in the cache; blocks."""
        drop_layers(self._api, self._record)


def drop_layers(api: Any, record: Path) -> None:
    """Remove the layers of a build that came to nothing, as far as nobody else uses them; blocks.

    The record stays where a step of the build still runs, so that it is tried again.
    """
    from docker.errors import APIError, NotFound

    try:
        said = api.inspect_image(record.read_text())
        if not said.get("RepoTags") and not said.get("RepoDigests"):
            api.remove_image(said["Id"])
    except (NotFound, FileNotFoundError):
        pass
    except APIError as error:
        if "container" in str(error.explanation):
            return
    record.unlink(missing_ok=True)


async def build(engine: Engine, image: Image, name: str, record: Path) -> None:
    """Build an image and name it; `record` is a file for what is under way.

    Raises `BuildFailed` where its Dockerfile is at fault or it took too long, else `EngineError`.
    """
    buildkit = needs_buildkit(engine, image)
    building = Building(engine.api, record)
    done = False
    try:
        job = await _job(engine, image, name, buildkit=buildkit)
        fault = await finished(engine, job, building.note, image.build_timeout_s)
        done = not fault
    except TimeoutError as error:
        raise BuildFailed(f"it took longer than {image.build_timeout_s:g} s") from error
    finally:
        if done:
            record.unlink(missing_ok=True)
        else:
            with suppress(MiloError):
                await engine.ask(building.drop_rest)
    if fault:
        raise BuildFailed(f"{fault}\n{building.words}".strip())


def needs_buildkit(engine: Engine, image: Image) -> bool:
    """Whether only BuildKit can build it; raises `BuildFailed` where this engine's can't."""
    asks = asks_of(image.context.text(image.dockerfile))
    for ask in asks:
        if ask.builder is Builder.HEREDOCS and not engine.facts.heredocs:
            raise BuildFailed(
                f"{image.dockerfile} line {ask.line}: {ask.words} needs Docker Engine 23 or later, "
                f"this one is {engine.facts.version}"
            )
    return bool(asks)


def bound_cache(api: Any, most_bytes: int) -> None:
    """Shrink BuildKit's cache to so many bytes, the least recently used first; blocks."""
    api._raise_for_status(api._post(api._url("/build/prune"), params={"keep-storage": most_bytes}))


async def _job(engine: Engine, image: Image, name: str, *, buildkit: bool) -> Job:
    network = await _network(engine)
    params: Mapping[str, Any] = {
        "t": name,
        "dockerfile": image.dockerfile,
        "rm": True,
        "forcerm": True,
        "labels": f'{{"{LABEL}": "{image.digest}"}}',
        **({"networkmode": network} if network else {}),
        **({"version": "2"} if buildkit else {}),
    }
    headers = {"Content-Type": "application/x-tar"}
    context = context_tar(image.context)
    return Job(engine.api, "/build", params, data=context, headers=headers)


async def _network(engine: Engine) -> str | None:
    """None for the engine's default; "none" where it has no network to build in."""
    try:
        found = await engine.ask(engine.api.networks, names=["bridge"])
    except EngineError:
        return None
    return None if any(network["Name"] == "bridge" for network in found) else "none"


def context_tar(context: FileTree) -> bytes:
    """The build context; equal contexts are equal byte for byte, so that the cache finds them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, file in context.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(file.data), 0o755 if file.executable else 0o644
            tar.addfile(entry, io.BytesIO(file.data))
    return buffer.getvalue()
