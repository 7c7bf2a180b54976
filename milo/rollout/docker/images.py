"""Images on this host: pulled or built once, however many processes want them, within a quota.

Every image that MILO brought here bears the name ``milo/env:HASH``. A lock file of the same hash
keeps two processes from making it twice, and its time tells when it was last used; the least
recently used images are removed when all of them together exceed the quota. Images that were here
before, and the layers that they share with ours, are never removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout

from milo.core.errors import MiloError, TaskError
from milo.core.task import Image
from milo.core.tree import MAX_TREE_BYTES, FileTree
from milo.rollout.docker.archive import is_there, tree_at
from milo.rollout.docker.build import BuildFailed, build
from milo.rollout.docker.engine import Engine, EngineError, NotThere
from milo.rollout.docker.labels import labels

REPOSITORY = "milo/env"
HASH_CHARS = 32
AT_ONCE = 2
COVERED = ("/tests", "/solution", "/milo")
"""Where an environment covers what its image holds with files that come later."""
LOCK_LOOK_S = 0.2
MEBIBYTE = 1024 * 1024
PULL_S = 1800.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundImage:
    """An image on this host: its id, and what it says of user, folder and variables.

    `holds` are files of its own in places that are covered later.
    """

    id: str
    user: str
    workdir: str
    env: Mapping[str, str]
    holds: Mapping[str, FileTree] = field(default_factory=dict)

    @property
    def works_as_root(self) -> bool:
        """Whether its commands run as root."""
        return self.user.partition(":")[0] in ("", "root", "0")


class ImageStore:
    """The images of one host. One owner per process; any number of processes.

    `folder` holds the lock files; `quota_mb` bounds what our images hold beyond what others do.
    """

    def __init__(self, engine: Engine, folder: Path, quota_mb: int) -> None:
        self._engine = engine
        self._folder = folder
        self._quota = quota_mb * MEBIBYTE
        self._busy = asyncio.Semaphore(AT_ONCE)
        self._making: dict[str, asyncio.Lock] = {}
        self._held: dict[str, Mapping[str, FileTree]] = {}

    async def get(self, image: Image) -> FoundImage:
        """The image, made here if it isn't there; raises `TaskError` where it can't be made."""
        digest = image.digest[:HASH_CHARS]
        async with self._making.setdefault(digest, asyncio.Lock()):
            found = await self.find(f"{REPOSITORY}:{digest}")
            if found is None:
                async with self._locked(digest), self._busy:
                    found = await self._made(image, f"{REPOSITORY}:{digest}")
        self._note_use(digest)
        if found.id not in self._held:
            self._held[found.id] = await self._engine.ask(held_at, self._engine.api, found.id)
        return replace(found, holds=self._held[found.id])

    async def find(self, name: str) -> FoundImage | None:
        """An image of this host by name or id."""
        try:
            said = await self._engine.ask(self._engine.api.inspect_image, name)
        except NotThere:
            return None
        return found_image(said)

    async def _made(self, image: Image, name: str) -> FoundImage:
        found = await self.find(name)  # another process may have been quicker
        if found is None:
            await self._make(image, name)
            found = await self.find(name)
            await self._evict(keep=name)
        if found is None:
            raise MiloError(f"image {name} is gone as soon as it was made")
        return found

    async def _make(self, image: Image, name: str) -> None:
        if image.reference and await self._pulled(image, name):
            return
        try:
            await build(self._engine, image, name)
        except BuildFailed as error:
            raise TaskError(
                "the task's image", "to be built from its Dockerfile", str(error)
            ) from error

    async def _pulled(self, image: Image, name: str) -> bool:
        """Whether the reference could be had; False where it can be built instead."""
        api, reference = self._engine.api, image.reference
        was_here = await self.find(reference) is not None
        try:
            if not was_here:
                await self._engine.ask(pull, api, reference)
            repository, _, tag = name.rpartition(":")
            await self._engine.ask(api.tag, reference, repository, tag)
        except EngineError as error:
            if image.context:
                return False
            raise TaskError(
                f"image {reference}", "to be there, or in a registry", str(error)
            ) from error
        if not was_here:
            # From now on it has one name, ours, so that the quota can remove it.
            with suppress(EngineError):
                await self._engine.ask(api.remove_image, reference, noprune=True)
        return True

    async def _evict(self, keep: str) -> None:
        """Remove the least recently used images until the rest fits the quota."""
        held = await self._engine.ask(held_by_ours, self._engine.api)
        total = sum(held.values())
        for name in sorted(held, key=self._used_at):
            if total <= self._quota:
                return
            if name == keep:
                continue
            # One that a container uses is refused by the engine, and stays.
            with suppress(EngineError):
                await self._engine.ask(self._engine.api.remove_image, name)
                total -= held[name]

    def _used_at(self, name: str) -> float:
        try:
            return self._lock_file(name.rpartition(":")[2]).stat().st_mtime
        except OSError:
            return 0.0

    def _lock_file(self, digest: str) -> Path:
        return self._folder / f"{digest}.lock"

    @asynccontextmanager
    async def _locked(self, digest: str) -> AsyncIterator[None]:
        """Hold an image's lock against other processes; waits without a thread."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock: BaseFileLock = FileLock(self._lock_file(digest), is_singleton=False)
        while True:
            try:
                lock.acquire(timeout=0)
                break
            except Timeout:
                await asyncio.sleep(LOCK_LOOK_S)
        try:
            yield
        finally:
            lock.release()

    def _note_use(self, digest: str) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock_file(digest).touch()


def found_image(said: Mapping[str, Any]) -> FoundImage:
    """What the engine's inspection of an image says."""
    config = said.get("Config") or {}
    pairs = (pair.partition("=") for pair in config.get("Env") or ())
    return FoundImage(
        id=said["Id"],
        user=str(config.get("User") or ""),
        workdir=str(config.get("WorkingDir") or ""),
        env={name: value for name, _, value in pairs},
    )


def held_at(api: Any, image: str, places: tuple[str, ...] = COVERED) -> Mapping[str, FileTree]:
    """What an image holds in some places, of those where it holds anything; blocks."""
    made = api.create_container(image, ["true"], labels=labels(""), use_config_proxy=False)
    try:
        found = {}
        for place in places:
            if is_there(api, made["Id"], place):
                found[place] = tree_at(api, made["Id"], place, MAX_TREE_BYTES)
        return found
    finally:
        api.remove_container(made["Id"], v=True, force=True)


def pull(api: Any, reference: str) -> None:
    """Pull an image; blocks. Raises what the SDK raises, also for faults told in the stream."""
    from docker.errors import DockerException

    repository, tag = split_reference(reference)
    for line in api.pull(repository, tag=tag, stream=True, decode=True):
        if "error" in line:
            raise DockerException(str(line["error"]))


def split_reference(reference: str) -> tuple[str, str | None]:
    """Repository and tag (or digest); ``latest`` where none is given."""
    if "@" in reference:
        repository, _, digest = reference.partition("@")
        return repository, digest
    repository, colon, tag = reference.rpartition(":")
    if not colon or "/" in tag:
        return reference, "latest"
    return repository, tag


def held_by_ours(api: Any) -> dict[str, int]:
    """Bytes that each of our images holds alone, by name; blocks."""
    held: dict[str, int] = {}
    for said in api.df()["Images"] or ():
        for name in said.get("RepoTags") or ():
            if name.startswith(f"{REPOSITORY}:"):
                held[name] = max(0, int(said["Size"]) - max(0, int(said.get("SharedSize") or 0)))
    return held
