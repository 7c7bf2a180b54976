"""Pulls an image from its registry, with whatever login the engine's client has for that."""

from __future__ import annotations

from milo.rollout.docker.engine import Engine, EngineError
from milo.rollout.docker.job import Job, finished

PULL_S = 1800.0


async def pull(engine: Engine, reference: str, limit_s: float = PULL_S) -> None:
    """Pull an image; raises `EngineError` where it can't be had, or not within the limit."""
    try:
        fault = await finished(engine, pulling(engine, reference), lambda _: None, limit_s)
    except TimeoutError as error:
        raise EngineError(f"pulling {reference} took longer than {limit_s:g} s") from error
    if fault:
        raise EngineError(fault)


def pulling(engine: Engine, reference: str) -> Job:
    """The job of it."""
    from docker import auth

    repository, tag = split_reference(reference)
    registry, _ = auth.resolve_repository_name(repository)
    login = auth.get_config_header(engine.api, registry)
    return Job(
        engine.api,
        "/images/create",
        {"fromImage": repository, "tag": tag},
        headers={"X-Registry-Auth": login} if login else {},
    )


def split_reference(reference: str) -> tuple[str, str]:
    """Repository and tag (or digest); ``latest`` where none is given."""
    if "@" in reference:
        repository, _, digest = reference.partition("@")
        return repository, digest
    repository, colon, tag = reference.rpartition(":")
    if not colon or "/" in tag:
        return reference, "latest"
    return repository, tag
