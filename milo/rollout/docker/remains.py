"""Removes from this host what a container's root made in our folders, where we are not root."""

from __future__ import annotations

from pathlib import Path

from milo.core.task import Limits
from milo.rollout.docker.container import END_S, remove_container
from milo.rollout.docker.engine import Engine
from milo.rollout.docker.labels import labels
from milo.rollout.docker.shape import Shape, create_arguments
from milo.rollout.scratch import remove_folder

PLACE = "/remains"
EMPTY = f"cd {PLACE} && rm -rf ./* ./.[!.]* ./..?*"


async def remove_as_root(engine: Engine, image: str, folder: Path, owner: str) -> None:
    """Empty a folder by a container of its own, and remove it; raises `EngineError`."""
    shape = Shape(
        image=image,
        labels=labels(owner),
        limits=Limits(),
        binds={PLACE: (str(folder), True)},
        user="0:0",
        root_rights=True,
    )
    arguments = create_arguments(shape, engine.facts)
    arguments["entrypoint"] = ["/bin/sh", "-c", EMPTY]
    api = engine.api
    made = await engine.ask(api.create_container, **arguments, use_config_proxy=False)
    try:
        await engine.ask(api.start, made["Id"])
        await engine.ask(api.wait, made["Id"], timeout=END_S)
    finally:
        await remove_container(engine, str(made["Id"]))
    remove_folder(folder)
