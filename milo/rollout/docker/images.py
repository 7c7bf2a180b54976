"""Images on this host: pulled or built once, however many processes want them, within a quota.

Every image that MILO brought here bears the name ``milo/env:HASH``, or its own if it is the base
of others and a file says that it was brought. A lock file keeps two processes from making one
twice, and its time tells when it was last used; the least recently used are removed when all of
them together exceed the quota. Few are made at a time on one host. Images that were here before,
and the layers that they share with ours, are never removed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from milo.core.dockerfile import bases_of
from milo.core.errors import MiloError, TaskError
from milo.core.task import Image
from milo.core.tree import MAX_TREE_BYTES, FileTree
from milo.rollout.docker.archive import is_there, tree_at
from milo.rollout.docker.build import LAYERS, BuildFailed, bound_cache, build, drop_layers
from milo.rollout.docker.engine import Engine, EngineAway, EngineError, NotThere
from milo.rollout.docker.labels import NO_RUN, labels
from milo.rollout.docker.pull import pull
from milo.rollout.docker.turns import locked, locked_now

REPOSITORY = "milo/env"
HASH_CHARS = 32
BASE = ".base"
"""How the file ends that names an image which was pulled to build on."""
AT_ONCE = 2
"""Images made at a time on one host."""
AGAIN_S = 300.0
"""Seconds after which an image that could not be made is tried again."""
COVERED = ("/tests", "/solution", "/milo")
"""Where an environment covers what its image holds with files that come later."""
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundImage:
    """An image on this host: its id, and what it says of user, folder, variables and volumes.

    `holds` are files of its own in places that are covered later.
    """

    id: str
    user: str
    workdir: str
    env: Mapping[str, str]
    volumes: tuple[str, ...] = ()
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
        self._making: dict[str, asyncio.Lock] = {}
        self._failed: dict[str, tuple[float, TaskError]] = {}
        self._held: dict[str, Mapping[str, FileTree]] = {}

    async def get(self, image: Image) -> FoundImage:
        """The image, made here if it isn't there; raises `TaskError` where it can't be made.

        One that could not be made is not tried again for some minutes.
        """
        digest = image.digest[:HASH_CHARS]
        async with self._making.setdefault(digest, asyncio.Lock()):
            found = await self.find(f"{REPOSITORY}:{digest}")
            if found is None:
                self._refuse_again(digest)
                async with locked(self._lock_file(digest)), locked(*self._turns()):
                    found = await self._made(image, digest)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock_file(digest).touch()
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

    async def tidy(self) -> None:
        """Remove the layers that builds left whose makers died."""
        for record in sorted(self._folder.glob(f"*{LAYERS}")):
            with locked_now(self._lock_file(record.stem)) as is_free:
                if is_free:
                    await self._engine.ask(drop_layers, self._engine.api, record)

    async def _made(self, image: Image, digest: str) -> FoundImage:
        name = f"{REPOSITORY}:{digest}"
        found = await self.find(name)  # another process may have been quicker
        if found is not None:
            return found
        await self.tidy()
        try:
            await self._make(image, name, self._folder / f"{digest}{LAYERS}")
        except TaskError as error:
            self._failed[digest] = (asyncio.get_running_loop().time(), error)
            raise
        found = await self.find(name)
        await self._evict(keep=name)
        if found is None:
            raise MiloError(f"image {name} is gone as soon as it was made")
        return found

    def _refuse_again(self, digest: str) -> None:
        """Raise what was raised last time, if that isn't long ago."""
        failed_at, error = self._failed.get(digest, (0.0, None))
        if error is not None and asyncio.get_running_loop().time() < failed_at + AGAIN_S:
            raise error

    async def _make(self, image: Image, name: str, record: Path) -> None:
        if image.reference and await self._pulled(image, name):
            return
        await self._bring_bases(image)
        try:
            await build(self._engine, image, name, record)
        except BuildFailed as error:
            raise TaskError(
                "the task's image", "to be built from its Dockerfile", str(error)
            ) from error

    async def _bring_bases(self, image: Image) -> None:
        """Pull what the Dockerfile starts from, and remember that it was us."""
        text = image.context.text(image.dockerfile)
        for reference in bases_of(text):
            record = self._folder / f"{hashlib.sha256(reference.encode()).hexdigest()[:16]}{BASE}"
            if await self.find(reference) is not None:
                if record.exists():
                    record.touch()
                continue
            await self._pull(reference)
            record.write_text(reference)

    async def _pull(self, reference: str) -> None:
        try:
            await pull(self._engine, reference)
        except EngineAway:
            raise  # no image's fault: it is waited for, and asked again
        except EngineError as error:
            raise TaskError(
                f"image {reference}", "to be there, or in a registry", str(error)
            ) from error

    async def _pulled(self, image: Image, name: str) -> bool:
        """Whether the reference could be had; False where it can be built instead."""
        api, reference = self._engine.api, image.reference
        was_here = await self.find(reference) is not None
        try:
            if not was_here:
                await self._pull(reference)
        except TaskError:
            if image.dockerfile not in image.context:
                raise
            return False
        repository, _, tag = name.rpartition(":")
        await self._engine.ask(api.tag, reference, repository, tag)
        if not was_here:
            # From now on it has one name, ours, so that the quota can remove it.
            with suppress(EngineError):
                await self._engine.ask(api.remove_image, reference, noprune=True)
        return True

    async def _evict(self, keep: str) -> None:
        """Remove the least recently used images until the rest fits the quota; BuildKit's cache
        may have what they leave."""
        bases = {record.read_text(): record for record in self._folder.glob(f"*{BASE}")}
        held = await self._engine.ask(held_by, self._engine.api, frozenset(bases))
        total = sum(held.values())
        for name in sorted(held, key=lambda name: self._used_at(name, bases)):
            if total <= self._quota:
                break
            if name == keep:
                continue
            # One that a container uses is refused by the engine, and stays.
            with suppress(EngineError):
                await self._engine.ask(self._engine.api.remove_image, name)
                total -= held[name]
                if name in bases:
                    bases[name].unlink(missing_ok=True)
        with suppress(EngineError):
            left = max(0, self._quota - total)
            await self._engine.ask(bound_cache, self._engine.api, left)

    def _used_at(self, name: str, bases: Mapping[str, Path]) -> float:
        record = bases.get(name, self._lock_file(name.rpartition(":")[2]))
        try:
            return record.stat().st_mtime
        except OSError:
            return 0.0

    def _lock_file(self, digest: str) -> Path:
        return self._folder / f"{digest}.lock"

    def _turns(self) -> tuple[Path, ...]:
        """The locks of which every process that makes an image holds one."""
        return tuple(self._folder / f"turn-{number}.lock" for number in range(AT_ONCE))


def found_image(said: Mapping[str, Any]) -> FoundImage:
    """What the engine's inspection of an image says."""
    config = said.get("Config") or {}
    pairs = (pair.partition("=") for pair in config.get("Env") or ())
    return FoundImage(
        id=said["Id"],
        user=str(config.get("User") or ""),
        workdir=str(config.get("WorkingDir") or ""),
        env={name: value for name, _, value in pairs},
        volumes=tuple(sorted(config.get("Volumes") or ())),
    )


def held_at(api: Any, image: str, places: tuple[str, ...] = COVERED) -> Mapping[str, FileTree]:
    """What an image holds in some places, of those where it holds anything; blocks."""
    made = api.create_container(image, ["true"], labels=labels(NO_RUN), use_config_proxy=False)
    try:
        found = {}
        for place in places:
            if is_there(api, made["Id"], place):
                found[place] = tree_at(api, made["Id"], place, MAX_TREE_BYTES)
        return found
    finally:
        api.remove_container(made["Id"], v=True, force=True)


def held_by(api: Any, bases: frozenset[str] = frozenset()) -> dict[str, int]:
    """Bytes that each of our images, or of these bases, holds alone, by name; blocks."""
    held: dict[str, int] = {}
    for said in api.df()["Images"] or ():
        for name in said.get("RepoTags") or ():
            if name.startswith(f"{REPOSITORY}:") or name in bases:
                held[name] = max(0, int(said["Size"]) - max(0, int(said.get("SharedSize") or 0)))
    return held
