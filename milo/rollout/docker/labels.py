"""Whose a container or network is: the run, and the process that made it (`rollout.maker`)."""

from __future__ import annotations

from collections.abc import Mapping

from milo.rollout import maker

RUN = "milo.run"
OWNER = "milo.owner"
NO_RUN = ""
"""Labels what is made for all runs of a host, and only for a moment."""


def labels(run: str) -> dict[str, str]:
    """What everything that this process makes for a run is labelled with."""
    return {RUN: run, OWNER: maker.this_maker()}


def run_filter(run: str) -> dict[str, str]:
    """The engine's filter for what belongs to a run."""
    return {"label": f"{RUN}={run}"}


def is_abandoned(found: Mapping[str, str]) -> bool:
    """Whether who made it is dead, or is this very process (which asks to be rid of it)."""
    return maker.is_abandoned(found.get(OWNER, ""))
