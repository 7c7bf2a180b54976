"""What the driver tells of a cluster that has nobody left to run attempts."""

from __future__ import annotations

from milo.runtime.driver import NO_HOST, troubles_of
from milo.runtime.parts import Load


def test_a_run_that_waits_for_a_node_says_so() -> None:
    """What breaks without it: a run that lost its hosts looks as one that starts."""
    full = "the disk: it is full"
    assert troubles_of(Load(busy=0, slots=4, queued=9), [full]) == (full,)
    assert troubles_of(Load(busy=0, slots=0, queued=9), [full]) == (full, NO_HOST)
