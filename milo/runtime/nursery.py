"""What an island's shell is offered where children of later rounds are made ahead (`ahead`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from milo.core.events import CandidateProposed, Event
from milo.core.harness import Harness
from milo.search.island import Island, NeedChild


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A child that was made ahead of its round.

    `events` are those that the island takes up in its round, the proposal last; `harness` and
    `message` are what is to be committed of it.
    """

    events: tuple[Event, ...]
    proposal: CandidateProposed
    harness: Harness | None = None
    message: str = ""


class Nursery(Protocol):
    """Where children of later rounds are made while earlier ones are scored (`ahead`)."""

    refusal: str
    """Why no more children can be afforded; "" while more are begun."""

    def __contains__(self, round_: int) -> bool:
        """Whether the child of this round is in the making, or made."""
        ...

    async def child(self, island: Island, need: NeedChild) -> Made:
        """The child that is needed; those of the rounds after it are begun first."""
        ...
