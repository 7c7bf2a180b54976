"""What follows from an island's record: the next event to append, or nothing yet (SPEC §4)."""

from __future__ import annotations

from milo.core.events import (
    CandidateJudged,
    Event,
    FrameFixed,
    IslandClosed,
    RoundEnded,
    Verdict,
)
from milo.core.fitness import Fitness, missing_tasks
from milo.core.hypervolume import Frame
from milo.core.lineage import Node
from milo.core.plan import AdmissionKind
from milo.core.ports import Decision
from milo.search.admission import judge
from milo.search.draws import Purpose, generator
from milo.search.preserving import decide, next_probe
from milo.search.progress import Standing
from milo.search.record import IslandRecord

BARREN = 20
"""Invalid children in a row after which an island is closed: they cost no attempt, so a budget of
attempts alone would never end it."""


def following(record: IslandRecord) -> Event | None:
    """The one event that the record, as it stands, calls for; None where the island must ask."""
    state = record.state
    if state.closed:
        return None
    if state.round >= 0 and not record.begun:
        return _after_last_round(record)
    return _framing(record) if state.frame is None else _on_candidate(record)


def _on_candidate(record: IslandRecord) -> Event | None:
    node = record.current()
    if node is None:
        return None
    if node.verdict is None:
        return _verdict(record, node)
    if node.verdict.is_member and record.lacking(
        node.candidate, "validation", record.setup.validation
    ):
        return None
    return _round_end(record, node)


def closing(record: IslandRecord, reason: str) -> IslandClosed:
    """The island starts no further round."""
    return IslandClosed(island=record.setup.island, round=record.state.round, reason=reason)


def _after_last_round(record: IslandRecord) -> IslandClosed | None:
    """The reason to start no further round, if there is one."""
    rounds = record.setup.rounds
    if rounds is not None and record.state.round >= rounds:
        return closing(record, f"round {record.state.round} of {rounds} is done")
    own = record.lineage.of_island(record.state.island)
    last = [node.verdict for node in own if node.parents][-BARREN:]
    if len(last) == BARREN and set(last) == {Verdict.INVALID}:
        return closing(record, f"none of its last {BARREN} children was valid")
    return None


def _framing(record: IslandRecord) -> Event | None:
    """Fix the frame once seeds and members are scored; a root seed must be complete for it."""
    state = record.state
    if any(record.lacking(candidate, "search", state.search) for candidate in record.to_frame()):
        return None
    seed = record.own_seed()
    unmeasured = missing_tasks(record.search_scores(seed), state.search)
    if unmeasured and state.round < 0:
        return closing(
            record,
            f"its seed {seed} has no valid attempt on {len(unmeasured)} of "
            f"{len(state.search)} search tasks ({unmeasured[0]} first)",
        )
    own = record.measured_fitness(seed) or Fitness(0.0, 0.0, 0.0)
    frame = Frame.fixed_by(
        own, [*record.seed_fitness(), own], k=record.setup.k, n_tasks=len(state.search)
    )
    return FrameFixed(island=state.island, epoch=state.epoch, search=state.search, frame=frame)


def _verdict(record: IslandRecord, node: Node) -> Event | None:
    if not node.parents:
        return _judged(node, Verdict.SEED, Decision(admitted=True, reason="a seed"))
    invalid = _invalidity(record, node)
    if invalid:
        return _judged(node, Verdict.INVALID, Decision(admitted=False, reason=invalid))
    tasks = record.state.search
    if record.lacking(node.candidate, "search", tasks):
        return None
    if missing_tasks(node.evaluation("search"), tasks):
        return _round_end(record, node)
    if next_probe(record, node) is not None:
        return None
    decision = _admission(record, node)
    return _judged(node, Verdict.ADMITTED if decision.admitted else Verdict.REJECTED, decision)


def _admission(record: IslandRecord, node: Node) -> Decision:
    state, setup = record.state, record.setup
    if setup.strategy.admission.kind is AdmissionKind.PRESERVE:
        return decide(record, node)
    if state.frame is None:
        raise ValueError(f"island {state.island} judges {node.candidate} without a frame")
    return judge(
        node.evaluation("search"),
        [record.lineage[member].evaluation("search") for member in record.scored_members()],
        state.search,
        state.frame,
        setup.strategy.admission,
        generator(setup, node.round, Purpose.ADMISSION),
    )


def _judged(node: Node, verdict: Verdict, decision: Decision) -> CandidateJudged:
    return CandidateJudged(
        island=node.island,
        candidate=node.candidate,
        round=node.round,
        verdict=verdict,
        reason=decision.reason,
        gain=decision.gain,
        support=decision.support,
    )


def _invalidity(record: IslandRecord, node: Node) -> str:
    """Why a proposed child can't be scored, from the record alone; "" where it can."""
    if not node.harness:
        return node.change.diagnosis or "no valid child was proposed"
    for parent in node.parents:
        if record.lineage[parent].harness == node.harness:
            return f"the child is identical to its parent {parent}"
    for earlier in record.relatives():
        if earlier.candidate != node.candidate and earlier.harness == node.harness:
            return f"the child is identical to the earlier candidate {earlier.candidate}"
    return ""


def _round_end(record: IslandRecord, node: Node) -> RoundEnded:
    """Progress after the round's candidate; only an admitted one is validated."""
    state = record.state
    member = node.verdict is not None and node.verdict.is_member
    accuracy = record.validation_accuracy(node.candidate) if member else None
    if node.parents:
        after = Standing(stall=state.stall, best=state.best_validation).after(accuracy)
    else:
        after = Standing(best=accuracy or 0.0)
    return RoundEnded(
        island=state.island,
        round=state.round + 1,
        stall=after.stall,
        best_validation=after.best,
    )
