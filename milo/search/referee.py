"""The referee: which moves are possible now (SPEC §3.3). It checks rules and agents alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from milo.core.errors import MoveRefused
from milo.core.moves import Curriculum, Graft, Move, Reassign, Refusal, Speciate, islands_touched
from milo.core.ports import PopulationView
from milo.core.topology import IslandState, best_member, moved_members
from milo.search.curriculum import is_affordable, is_used, next_epoch, rescoring_attempts

MAX_MOVES = 2


def check_answer(
    moves: Sequence[Move], view: PopulationView, island: str
) -> tuple[tuple[Move, ...], tuple[Refusal, ...]]:
    """The moves of one answer that may be made, in order, and the refused ones with reasons.

    Only the first two possible moves are accepted, and only one of a kind for one island.
    """
    accepted: list[Move] = []
    refused: list[Refusal] = []
    for move in moves:
        try:
            _check_beside(move, accepted)
            check_move(move, view, island)
        except MoveRefused as refusal:
            refused.append(Refusal(move=move, reason=str(refusal)))
        else:
            accepted.append(move)
    return tuple(accepted), tuple(refused)


def check_move(move: Move, view: PopulationView, island: str) -> None:
    """Raise `MoveRefused` with the reason if the move is impossible now or repeats one.

    `island` is the one that was consulted about; a move may touch another open island.
    """
    _open(view, island)
    if move in pending_moves(view):
        raise MoveRefused(f"the same {move.kind} is on record and has not yet taken effect")
    match move:
        case Reassign():
            _check_reassign(move, view)
        case Graft():
            _check_graft(move, view)
        case Speciate():
            _check_speciate(move, view)
        case Curriculum():
            _check_curriculum(move, view)


def pending_moves(view: PopulationView) -> tuple[Move, ...]:
    """Moves on record that have neither taken effect nor become void everywhere they must."""
    settled = (*view.topology.moves, *view.topology.voided)
    applied = Counter((where, move) for where, _, move in settled)
    waiting: list[Move] = []
    for move in (move for answer in view.past for move in answer.moves):
        where = islands_touched(move) or _reached_by_curriculum(view, move)
        if all(applied[i, move] for i in where):
            applied.subtract((i, move) for i in where)
        elif any(not view.topology[i].closed for i in where if not applied[i, move]):
            waiting.append(move)
    return tuple(waiting)


def next_island(view: PopulationView) -> str:
    """The id of the next speciated island, counting those on record but not yet founded."""
    names = set(view.topology.islands)
    names |= {m.new_island for a in view.past for m in a.moves if isinstance(m, Speciate)}
    number = len(names) + 1
    while f"i{number}" in names:
        number += 1
    return f"i{number}"


def _reached_by_curriculum(view: PopulationView, move: Move) -> tuple[str, ...]:
    """Open islands whose search set is older than the move's."""
    assert isinstance(move, Curriculum)
    states = view.topology.islands.values()
    return tuple(s.island for s in states if not s.closed and s.epoch < move.epoch)


def _check_beside(move: Move, accepted: Sequence[Move]) -> None:
    if len(accepted) >= MAX_MOVES:
        raise MoveRefused(f"an answer holds at most {MAX_MOVES} moves")
    for other in accepted:
        if other.kind == move.kind and islands_touched(other) == islands_touched(move):
            raise MoveRefused(f"this answer already holds a {move.kind} for the same island")


def _open(view: PopulationView, island: str) -> IslandState:
    if island not in view.topology.islands:
        known = ", ".join(view.topology.islands)
        raise MoveRefused(f"there is no island {island!r}; there are {known}")
    state = view.topology[island]
    if state.closed:
        raise MoveRefused(f"island {island} is closed: {state.closed}")
    if not state.members:
        raise MoveRefused(f"island {island} has not yet scored its seed")
    return state


def _known_mutator(view: PopulationView, mutator: str) -> None:
    if mutator not in view.pool:
        raise MoveRefused(f"there is no mutator {mutator!r} in the pool {', '.join(view.pool)}")


def _check_reassign(move: Reassign, view: PopulationView) -> None:
    state = _open(view, move.island)
    _known_mutator(view, move.mutator)
    if state.mutator == move.mutator:
        raise MoveRefused(f"island {move.island} already has mutator {move.mutator}")


def _check_graft(move: Graft, view: PopulationView) -> None:
    state = _open(view, move.island)
    if move.donor == move.island:
        raise MoveRefused(f"island {move.island} can't be its own donor")
    donor = view.topology.islands.get(move.donor)
    if donor is None or not donor.members:
        raise MoveRefused(f"there is no island {move.donor!r} with members to graft from")
    if move.donor_candidate not in view.lineage:
        raise MoveRefused(f"there is no candidate {move.donor_candidate!r}")
    best = best_member(donor, view.lineage)
    if move.donor_candidate != best:
        raise MoveRefused(f"the best of {move.donor} is {best}, not {move.donor_candidate}")
    if state.pending_graft or _graft_waits(view, move.island):
        raise MoveRefused(f"island {move.island} has a graft that is not yet made")
    own = best_member(state, view.lineage)
    if view.lineage[own].harness == view.lineage[best].harness:
        raise MoveRefused(f"{own} and {best} are the same harness")
    pair = {own, best}
    if any(len(n.parents) > 1 and set(n.parents) == pair for n in view.lineage):
        raise MoveRefused(f"{own} and {best} were grafted before")


def _graft_waits(view: PopulationView, island: str) -> bool:
    return any(isinstance(m, Graft) and m.island == island for m in pending_moves(view))


def _check_speciate(move: Speciate, view: PopulationView) -> None:
    state = _open(view, move.island)
    _known_mutator(view, move.mutator)
    if move.root not in view.lineage:
        raise MoveRefused(f"there is no candidate {move.root!r}")
    if move.root == state.root or not view.lineage[move.root].parents:
        raise MoveRefused(f"{move.root} is a root")
    if move.root not in state.members:
        raise MoveRefused(f"{move.root} is no admitted member of island {move.island}")
    if not moved_members(state, move.root, view.lineage):
        raise MoveRefused(f"the subtree of {move.root} holds nothing but the island's best")
    if any(isinstance(m, Speciate) and m.island == move.island for m in pending_moves(view)):
        raise MoveRefused(f"island {move.island} has a speciation that is not yet made")
    expected = next_island(view)
    if move.new_island != expected:
        raise MoveRefused(f"the next island is {expected}, not {move.new_island!r}")


def _check_curriculum(move: Curriculum, view: PopulationView) -> None:
    outside = [task for task in move.tasks if task not in view.search_split]
    if outside:
        raise MoveRefused(f"task {outside[0]!r} is not in the search split")
    if not move.tasks or len(set(move.tasks)) < len(move.tasks):
        raise MoveRefused("a search set holds each of its tasks once, and at least one")
    if any(isinstance(m, Curriculum) for m in pending_moves(view)):
        raise MoveRefused("a curriculum is on record and has not yet reached all islands")
    if is_used(view, move.tasks):
        raise MoveRefused("this search set is or was in use")
    if move.epoch != next_epoch(view):
        raise MoveRefused(f"the next search set is number {next_epoch(view)}, not {move.epoch}")
    if not is_affordable(view, move.tasks):
        raise MoveRefused(
            f"scoring the admitted harnesses on the new tasks costs "
            f"{rescoring_attempts(view, move.tasks)} attempts and a child "
            f"{view.k * len(move.tasks)}, but {view.attempts_left} are left"
        )
