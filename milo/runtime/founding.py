"""How an island comes to life: from a seed, by Speciate, or again from its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from milo.core.events import Event, MoveApplied, Record
from milo.core.moves import Speciate
from milo.core.population import Population
from milo.core.topology import IslandState, moved_members
from milo.runtime.ahead import Ahead
from milo.runtime.island_shell import Pace, Shell
from milo.runtime.parts import Parts, Peers
from milo.search.island import Island, IslandSetup, SeedRef


@dataclass(frozen=True, kw_only=True, slots=True)
class Ticket:
    """What starts an island: its setup, and a seed or a speciation where it is new."""

    setup: IslandSetup
    mutator: str
    root: SeedRef | None = None
    search: tuple[str, ...] = ()
    speciate: Speciate | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Birth:
    """The source of a speciated island as it stood when the move took effect."""

    source: IslandState
    members: tuple[str, ...]
    niche: str
    history: Sequence[Event]


async def run_island(parts: Parts, peers: Peers, ticket: Ticket, pace: Pace) -> str:
    """Found or restore the island, then run it to its end; the reason why it closed."""
    name = ticket.setup.island
    epoch = await peers.recorder.claim(name)
    own, foreign = await peers.recorder.island_events(name)
    if own:
        island = Island.restore(ticket.setup, own, foreign)
    else:
        island, events = await _found(peers, ticket)
        await peers.recorder.append(name, epoch, events)
    shell = Shell(island, epoch, parts, peers, pace)
    if ticket.setup.strategy.pipeline_depth == 1:
        try:
            return await shell.run()
        finally:
            await shell.release()
    shell.nursery = ahead = Ahead(shell.beside, peers, parts.replay(), own, foreign)
    try:
        return await shell.run()
    finally:
        await ahead.close()


async def _found(peers: Peers, ticket: Ticket) -> tuple[Island, Sequence[Event]]:
    if ticket.root is not None:
        return Island.found(ticket.setup, ticket.mutator, ticket.root, ticket.search)
    assert ticket.speciate is not None, "a new island has a seed or a source"
    records = await peers.recorder.watch(-1, 0.0)
    birth = birth_of(ticket.speciate, records)
    return Island.found_speciated(
        ticket.setup, ticket.speciate, birth.source, birth.members, birth.niche, birth.history
    )


def birth_of(move: Speciate, records: Sequence[Record]) -> Birth:
    """Fold the journal up to the moment at which the move took effect on its source.

    Only the source's own events matter, so the result does not depend on how far others were.
    """
    population = Population()
    for record in records:
        event = record.event
        if isinstance(event, MoveApplied) and event.move == move:
            source = population.topology[move.island]
            members = moved_members(source, move.root, population.lineage)
            wanted = set(population.history_of(members))
            history = [r.event for r in records if getattr(r.event, "candidate", "") in wanted]
            return Birth(
                source=source, members=members, niche=_niche(move, population), history=history
            )
        population.apply(event)
    raise LookupError(f"{move} never took effect")


def _niche(move: Speciate, population: Population) -> str:
    for consulted in population.consultations:
        if move in consulted.consultation.moves:
            return consulted.consultation.words
    return ""
