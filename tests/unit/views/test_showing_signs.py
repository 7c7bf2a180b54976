"""A candidate's page tells what was refused in its place and which attempts bear signs."""

from __future__ import annotations

from milo.core.events import Change
from milo.views.dossier import AttemptLine, Dossier
from milo.views.sections import Section
from milo.views.showing import CandidateView, candidate_sections


def attempt(key: str, *flags: str) -> AttemptLine:
    return AttemptLine(
        key=key,
        task=key,
        split="search",
        index=0,
        replicate=0,
        status="completed",
        reward=0.0,
        resolved=False,
        tokens=1,
        calls=1,
        dollars=0.0,
        latency_s=1.0,
        trace="",
        flags=flags,
        detail="",
    )


def sections(*attempts: AttemptLine, sent_back: tuple[str, ...] = ()) -> dict[str, Section]:
    view = CandidateView(
        candidate="i1.1",
        island="i1",
        round=1,
        parents=("i1.0",),
        path=("i1.0", "i1.1"),
        mutator="m",
        verdict="invalid",
        reason="no valid child",
        gain=0.0,
        support=0.0,
        fitness={},
        tasks=(),
        dossier=Dossier(
            candidate="i1.1", change=Change(title="t"), patches=(), attempts=tuple(attempts)
        ),
        sent_back=sent_back,
    )
    return {section.title: section for section in candidate_sections(view)}


def test_every_refused_proposal_is_told_with_its_reason():
    hit = "the child holds task-specific logic: main.py:3 holds the id of task held-out-1"
    assert sections(sent_back=(hit, "the smoke test fails"))["Sent back"].lines == (
        f"proposal 1: {hit}",
        "proposal 2: the smoke test fails",
    )
    assert "Sent back" not in sections()


def test_signs_of_hacking_stand_with_their_attempts_and_what_they_cost():
    many = [attempt(f"t{n}", "tried-network") for n in range(7)]
    told = sections(attempt("a", "wrote-tests", "tried-network"), *many)["Signs of reward hacking"]
    assert told.is_warning
    assert told.lines == (
        "tried-network (in vain): a, t0, t1, t2, t3 and 3 more",
        "wrote-tests (reward 0): a",
    )
    assert "Signs of reward hacking" not in sections(attempt("a"))
