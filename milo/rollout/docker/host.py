"""How the engine of this host is used, as found out once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from milo.rollout.docker.engine import Engine
from milo.rollout.docker.images import FoundImage, ImageStore


@dataclass(frozen=True, kw_only=True, slots=True)
class DockerHost:
    """The engine, its images, and what we may do.

    `base` is the image for tasks without one; `uid` the user of their commands, `shared` whether
    that isn't us; `enters` whether we may step into a container's network; `networks` whether
    bridges can be made.
    """

    engine: Engine
    images: ImageStore
    base: FoundImage
    base_name: str
    uid: int
    shared: bool
    root: Path
    enters: bool
    networks: bool
