"""Answers of actors, with what Ray wraps around them taken off."""

from __future__ import annotations

from typing import Any

from ray.exceptions import RayActorError, RayTaskError, WorkerCrashedError

from milo.core.errors import ClusterError
from milo.runtime.parts import PeerLost


async def answer(reference: Any) -> Any:
    """The result behind an object reference; errors arrive as they were raised.

    Raises `PeerLost` where the actor is dead, or dies during the call, and another `ClusterError`
    where it could never be made: a node without MILO, say, which won't have it a moment later.
    """
    try:
        return await reference
    except RayTaskError as error:
        cause = error.cause
        raise (cause if isinstance(cause, BaseException) else error) from None
    except (RayActorError, WorkerCrashedError) as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        if isinstance(error, RayActorError) and error.actor_init_failed:
            raise ClusterError(f"no process of MILO could be made: {words[-1]}") from None
        raise PeerLost(words[0]) from None
