"""Answers of actors, with what Ray wraps around them taken off."""

from __future__ import annotations

from typing import Any

from ray.exceptions import RayActorError, RayTaskError, WorkerCrashedError

from milo.runtime.parts import PeerLost


async def answer(reference: Any) -> Any:
    """The result behind an object reference; errors arrive as they were raised.

    Raises `PeerLost` where the actor is dead, or dies during the call.
    """
    try:
        return await reference
    except RayTaskError as error:
        cause = error.cause
        raise (cause if isinstance(cause, BaseException) else error) from None
    except (RayActorError, WorkerCrashedError) as error:
        raise PeerLost(str(error).split("\n", 1)[0]) from None
