"""What is told of an actor that died: why it did, not only that."""

from __future__ import annotations

from typing import Any, cast

import pytest
from ray.exceptions import ActorDiedError, RayActorError, RayTaskError

from milo.core.errors import ClusterError, DiskFull, RunError
from milo.runtime.parts import PeerLost
from milo.runtime.remote import answer

DIED = """The actor died unexpectedly before finishing this task.
\tclass_name: HostActor
\tpid: 4242
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR
Worker exit detail: killed by SIGKILL by the OOM killer."""
TRACEBACK = """ray::Recorder.__init__() (pid=1, ip=127.0.0.1)
  File "recorder.py", line 42, in __init__
    self._records = parts.open_records()
                    ^^^^^^^^^^^^^^^^^^^^
milo.core.errors.RunError: run here: expected a run that no live process owns, found process 7
"""


async def raised(error: Exception) -> None:
    raise error


async def told(error: Exception) -> str:
    with pytest.raises(ClusterError) as caught:
        await answer(raised(error))
    made = not getattr(error, "actor_init_failed", False)
    assert isinstance(caught.value, PeerLost) is made, "one that was never made is not made again"
    return str(caught.value)


async def test_of_a_dead_actor_the_cause_is_told_which_stands_last() -> None:
    """What breaks without it: of a host that the system killed for its memory one reads that it
    died, and nothing that helps."""
    words = await told(RayActorError(error_msg=DIED))
    assert "HostActor" in words and words.endswith("killed by SIGKILL by the OOM killer.")
    assert "\n" not in words


async def test_of_an_actor_that_could_not_be_made_the_reason_is_told() -> None:
    cause = RayTaskError("f", TRACEBACK, RunError("run", "a", "b"), "title", 1, "127.0.0.1")
    words = await told(ActorDiedError(cause))
    assert words.startswith(
        "no process of MILO could be made: milo.core.errors.RunError: run here:"
    )
    assert words.endswith("found process 7") and "line 42" not in words


async def test_what_an_actor_raised_arrives_as_it_was_raised() -> None:
    fault = DiskFull("no room")
    with pytest.raises(DiskFull) as caught:
        await answer(raised(RayTaskError("f", "trace", fault, "title", 1, "127.0.0.1")))
    assert cast(Any, caught.value) is fault
