"""Finds the Docker engine of this host and what can be done with it; refuses with the reason."""

from __future__ import annotations

import os
import socket
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path

from milo.core.errors import ConfigError
from milo.rollout.docker.engine import DEFAULT_ADDRESS, Engine, EngineError, connect, translated
from milo.rollout.docker.host import DockerHost
from milo.rollout.docker.images import FoundImage, ImageStore, found_image
from milo.rollout.docker.labels import NO_RUN, labels
from milo.rollout.docker.pull import pulling
from milo.rollout.docker.sandbox import DockerSandbox
from milo.rollout.netdoor import may_enter
from milo.rollout.scratch import make_folder, remove_folder, scratch_root
from milo.rollout.system import NOBODY

QUOTA_MB = 40 * 1024
PROBE_NETWORK = "milo-probe"
PROBE = "probe"
NOT_SEEN = "bind source path does not exist"
CREDENTIALS = struct.Struct("3i")
"""Process, user and group of whoever listens on a unix socket."""


def choose_docker(
    base: str, *, address: str = "", root: Path | None = None, quota_mb: int = QUOTA_MB
) -> DockerSandbox:
    """The sandbox on the engine at `address` (the system's own where it is empty).

    `base` is the image for tasks without one, pulled if need be; `root` is where scratch folders
    lie; `quota_mb` bounds the disk that images may hold. Blocks: for some 100 ms, or as long as
    the pull takes. Raises `ConfigError` where it can't be used.
    """
    engine = connect(address or DEFAULT_ADDRESS)
    found = base_image(engine, base)
    uid = os.geteuid()
    return DockerSandbox(
        DockerHost(
            engine=engine,
            images=ImageStore(engine, lock_folder(), quota_mb),
            base=found,
            base_name=base,
            uid=uid if uid != 0 else NOBODY,
            shared=uid == 0,
            root=root if root is not None else seen_root(engine, found.id, usual_roots()),
            enters=may_enter() and counts_as_we(engine.socket),
            networks=can_bridge(engine),
        )
    )


def usual_roots() -> tuple[Path, ...]:
    """Where scratch folders may lie, the best first."""
    return tuple(dict.fromkeys((scratch_root(), Path(tempfile.gettempdir()))))


def seen_root(engine: Engine, image: str, roots: Iterable[Path]) -> Path:
    """The first of some folders that the engine sees as well; raises `ConfigError` for none.

    An engine in a container of its own has other folders. It would make empty ones in the place of
    ours, so that no harness were there to run.
    """
    roots = tuple(roots)
    for root in roots:
        if is_seen(engine, image, root):
            return root
    places = " or ".join(map(str, roots))
    raise ConfigError("sandbox docker", f"an engine that shares {places} with us", "one that can't")


def is_seen(engine: Engine, image: str, root: Path) -> bool:
    """Whether what we put into a folder is there for the engine, by a container that never runs."""
    folder, api = make_folder(root, PROBE, shared=True), engine.api
    mount = {"Type": "bind", "Source": str(folder), "Target": f"/{PROBE}", "ReadOnly": True}
    try:
        made = translated(
            api.create_container,
            image,
            ["true"],
            labels=labels(NO_RUN),
            host_config={"Mounts": [mount]},
            use_config_proxy=False,
        )
        translated(api.remove_container, made["Id"], v=True, force=True)
    except EngineError as error:
        return NOT_SEEN not in str(error)  # any other fault is met, and told, where it matters
    finally:
        remove_folder(folder)
    return True


def lock_folder() -> Path:
    """Where the processes of one user agree on who makes an image."""
    return Path(tempfile.gettempdir()) / f"milo-images-{os.geteuid()}"


def base_image(engine: Engine, name: str) -> FoundImage:
    """The image for tasks without one; raises `ConfigError` where it can't be had."""
    try:
        return found_image(translated(engine.api.inspect_image, name))
    except EngineError:
        pass
    try:
        fault = translated(pulling(engine, name).run, lambda _: None)
        if fault:
            raise EngineError(fault)
        return found_image(translated(engine.api.inspect_image, name))
    except EngineError as error:
        raise ConfigError(
            "cluster.image", "an image of this host or a registry", f"{name!r}: {error}"
        ) from error


def counts_as_we(place: str) -> bool:
    """Whether the ids of processes that the engine names are those of processes as we see them.

    An engine in a container of its own beside ours counts otherwise: stepping into the network of
    "its" process would lead nowhere, or into another's.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(place)
        said = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    listener, _, _ = CREDENTIALS.unpack(said)  # 0 where it isn't seen from here
    try:
        return os.readlink(f"/proc/{listener}/ns/pid") == os.readlink("/proc/self/ns/pid")
    except OSError:
        return False


def can_bridge(engine: Engine) -> bool:
    """Whether networks can be made; one is, and removed."""
    name, api = f"{PROBE_NETWORK}.{os.getpid()}", engine.api
    try:
        made = translated(api.create_network, name, driver="bridge", labels=labels(NO_RUN))
        translated(api.remove_network, made["Id"])
    except EngineError:
        return False
    return True
