"""Answers of actors, with what Ray wraps around them taken off."""

from __future__ import annotations

from typing import Any

from ray.exceptions import RayActorError, RayTaskError, WorkerCrashedError

from milo.core.errors import ClusterError
from milo.runtime.parts import PeerLost


async def answer(reference: Any) -> Any:
    """The result behind an object reference; errors arrive as they were raised.

    Raises `PeerLost`, with all that Ray knows of it, where the actor is dead, or dies during the
    call, and another `ClusterError` where it could never be made: a node without MILO, say, which
    won't have it a moment later.
    """
    try:
        return await reference
    except RayTaskError as error:
        cause = error.cause
        raise (cause if isinstance(cause, BaseException) else error) from None
    except (RayActorError, WorkerCrashedError) as error:
        if getattr(error, "actor_init_failed", False):
            raise ClusterError(_why(error)) from None
        raise PeerLost(_why(error)) from None


def _why(error: Exception) -> str:
    """In one line: what ended the process stands last, after what it was.

    Of an actor that could not even be made Ray tells by a traceback: its end alone says why.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    if getattr(error, "actor_init_failed", False):
        frames = [number for number, line in enumerate(lines) if line.startswith(" ")]
        lines = ["no process of MILO could be made:", *lines[max(frames, default=0) + 1 :]]
    return " ".join(line.strip() for line in lines) or type(error).__name__
