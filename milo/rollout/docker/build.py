"""Builds an image from a task's Dockerfile, within the task's time limit."""

from __future__ import annotations

import asyncio
import io
import tarfile
from contextlib import suppress
from typing import Any

from milo.core.errors import MiloError
from milo.core.task import Image
from milo.core.tree import FileTree
from milo.rollout.docker.engine import Engine, EngineError

LINE_S = 3600.0
TAIL_LINES = 20
TAIL_CHARS = 2000
LABEL = "milo.image"


class BuildFailed(MiloError):
    """The Dockerfile can't be built; says with which words the engine ended."""


class Building:
    """One build under way, in a thread; `cancel` cuts the engine's answer, which ends it there."""

    def __init__(self, api: Any, image: Image, name: str, network: str | None) -> None:
        self._api = api
        self._image = image
        self._name = name
        self._network = network
        self._answer: Any = None
        self._cut = False
        self._layer = ""
        self.tail: list[str] = []

    def run(self) -> None:
        """Build to the end; blocks. Raises `BuildFailed`, and what the SDK raises."""
        self._answer = self._post()
        if self._cut:
            self.cancel()
        fault = ""
        try:
            for line in self._api._stream_helper(self._answer, decode=True):
                fault = str(line.get("error") or fault)
                self._note(str(line.get("stream") or ""))
        finally:
            self._answer.close()
        if fault:
            self._drop_rest()
            words = "".join(self.tail)[-TAIL_CHARS:]
            raise BuildFailed(f"{fault}\n{words}".strip())

    def cancel(self) -> None:
        """End the build; the engine ends it when nobody listens any more."""
        self._cut = True
        if self._answer is not None:
            with suppress(OSError, AttributeError):
                self._answer.raw.shutdown()

    def _post(self) -> Any:
        params = {
            "t": self._name,
            "dockerfile": self._image.dockerfile,
            "rm": True,
            "forcerm": True,
            "labels": f'{{"{LABEL}": "{self._image.digest}"}}',
            **({"networkmode": self._network} if self._network else {}),
        }
        answer = self._api._post(
            self._api._url("/build"),
            data=context_tar(self._image.context),
            params=params,
            headers={"Content-Type": "application/x-tar"},
            stream=True,
            timeout=LINE_S,
        )
        self._api._raise_for_status(answer)
        return answer

    def _note(self, text: str) -> None:
        if text.startswith(" ---> ") and " " not in text.strip()[5:].strip():
            self._layer = text.strip()[5:].strip()
        self.tail = [*self.tail, text][-TAIL_LINES:]

    def _drop_rest(self) -> None:
        """Remove what a failed build leaves in the cache, as far as nobody else uses it."""
        from docker.errors import DockerException

        with suppress(DockerException):
            said = self._api.inspect_image(self._layer) if self._layer else {}
            if said and not said.get("RepoTags") and not said.get("RepoDigests"):
                self._api.remove_image(said["Id"])


async def build(engine: Engine, image: Image, name: str) -> None:
    """Build an image and name it.

    Raises `BuildFailed` where its Dockerfile is at fault or it took too long, else `EngineError`.
    """
    network = await _network(engine)
    building = Building(engine.api, image, name, network)
    work = asyncio.ensure_future(engine.ask(building.run))
    try:
        async with asyncio.timeout(image.build_timeout_s):
            await asyncio.shield(work)
    except TimeoutError as error:
        raise BuildFailed(f"it took longer than {image.build_timeout_s:g} s") from error
    finally:
        if not work.done():
            building.cancel()
            with suppress(MiloError):
                await work


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
