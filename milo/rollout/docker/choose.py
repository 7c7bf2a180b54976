"""Finds the Docker engine of this host and what can be done with it; refuses with the reason."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from milo.core.errors import ConfigError
from milo.rollout.docker.engine import DEFAULT_ADDRESS, Engine, EngineError, connect, translated
from milo.rollout.docker.host import DockerHost
from milo.rollout.docker.images import FoundImage, ImageStore, found_image
from milo.rollout.docker.labels import NO_RUN, labels
from milo.rollout.docker.pull import pulling
from milo.rollout.docker.sandbox import DockerSandbox
from milo.rollout.netdoor import may_enter
from milo.rollout.scratch import scratch_root
from milo.rollout.system import NOBODY

QUOTA_MB = 40 * 1024
PROBE_NETWORK = "milo-probe"


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
            root=root if root is not None else scratch_root(),
            enters=may_enter(),
            networks=can_bridge(engine),
        )
    )


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


def can_bridge(engine: Engine) -> bool:
    """Whether networks can be made; one is, and removed."""
    name, api = f"{PROBE_NETWORK}.{os.getpid()}", engine.api
    try:
        made = translated(api.create_network, name, driver="bridge", labels=labels(NO_RUN))
        translated(api.remove_network, made["Id"])
    except EngineError:
        return False
    return True
