"""A hand-made run for the views: three seeds, four moves, a winner by graft."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from milo.core.attempt import AttemptKey, Outcome, Status, Timings, Usage
from milo.core.events import (
    CandidateJudged,
    CandidateProposed,
    CandidateScored,
    Change,
    Consulted,
    Event,
    FrameFixed,
    IslandClosed,
    IslandFounded,
    MoveApplied,
    Record,
    RoundEnded,
    RunEnded,
    RunStarted,
    Verdict,
    WinnerFrozen,
)
from milo.core.fitness import TaskScore
from milo.core.hypervolume import Frame
from milo.core.moves import Consultation, Curriculum, Diagnosis, Graft, Reassign, Refusal, Speciate

SEARCH = tuple(f"s{i:02}" for i in range(10))
VALIDATION = tuple(f"v{i:02}" for i in range(10))
TEST = tuple(f"t{i:02}" for i in range(20))
SPLITS = {"search": SEARCH, "validation": VALIDATION, "test": TEST}
NOTHING = Usage()
FRAME = Frame(seed_accuracy=0.2, token_scale=400.0, latency_scale=2.0)


class Story:
    """Builds a journal event by event, three seconds apart."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.made: list[Outcome] = []

    def add(self, *events: Event, after: float = 3.0) -> None:
        for event in events:
            last = self.records[-1].time if self.records else 1000.0
            self.records.append(
                Record(
                    seq=len(self.records),
                    time=last + after,
                    shard=getattr(event, "island", "run"),
                    epoch=1,
                    event=event,
                )
            )

    def start(self, plan: dict[str, object] | None = None) -> None:
        budget = {"rounds": None, "hours": 0.2, "attempts": 900, "tokens": None, "dollars": None}
        self.add(
            RunStarted(
                name="demo",
                plan=plan if plan is not None else {"budget": budget},
                search=SEARCH,
                validation=VALIDATION,
                test=TEST,
                model="local@0",
            )
        )

    def propose(
        self,
        candidate: str,
        *parents: str,
        title: str = "an edit",
        round_: int = 1,
        usage: Usage = NOTHING,
    ) -> None:
        self.add(
            CandidateProposed(
                island=candidate.split(".", maxsplit=1)[0],
                candidate=candidate,
                round=round_,
                parents=parents,
                harness=f"digest-{candidate}",
                mutator="operators" if parents else "",
                change=Change(
                    title=title,
                    diagnosis=f"why {candidate} was made" if parents else "",
                    hypothesis=f"what {candidate} should do" if parents else "",
                ),
                usage=usage,
            )
        )

    def score(self, candidate: str, split: str, share: float, tokens: float = 400.0) -> None:
        tasks = SPLITS[split]
        solved = round(share * len(tasks))
        scores = {
            task: TaskScore(
                n=2,
                reward=float(i < solved),
                resolved=2 * (i < solved),
                tokens=tokens,
                latency_s=1.5,
            )
            for i, task in enumerate(tasks)
        }
        island = candidate.split(".", maxsplit=1)[0]
        self.add(CandidateScored(island=island, candidate=candidate, split=split, scores=scores))
        for task, score in scores.items():
            self.made += [self.attempt(candidate, task, i, score) for i in range(score.n)]

    def attempt(self, candidate: str, task: str, index: int, score: TaskScore) -> Outcome:
        return Outcome(
            key=AttemptKey(
                harness=f"digest-{candidate}",
                task=task,
                task_digest="d",
                model="local@0",
                index=index,
            ),
            status=Status.COMPLETED,
            reward=score.reward,
            resolved=score.resolved > 0,
            usage=Usage(uncached_input=int(score.tokens) - 100, output=100, calls=1),
            timings=Timings(agent_s=score.latency_s),
        )

    def judge(self, candidate: str, verdict: Verdict, reason: str = "", round_: int = 1) -> None:
        self.add(
            CandidateJudged(
                island=candidate.split(".", maxsplit=1)[0],
                candidate=candidate,
                round=round_,
                verdict=verdict,
                reason=reason,
                gain=0.0123 if verdict is Verdict.ADMITTED else 0.0,
                support=0.99,
            )
        )

    def seed_island(self, island: str, share: float) -> None:
        root = f"{island}.0"
        self.add(
            IslandFounded(island=island, mutator="operators", root=root, search=SEARCH),
        )
        self.propose(root, title=f"seed {island}", round_=0)
        self.score(root, "search", share)
        self.add(FrameFixed(island=island, epoch=0, search=SEARCH, frame=FRAME))
        self.judge(root, Verdict.SEED, round_=0)
        self.score(root, "validation", share)
        self.add(RoundEnded(island=island, round=0, stall=0, best_validation=share))

    def child(self, candidate: str, *parents: str, share: float, round_: int, **kw: str) -> None:
        """An admitted, validated child that ends its round."""
        self.propose(candidate, *parents, round_=round_, title=kw.get("title", "an edit"))
        self.score(candidate, "search", share, tokens=500.0)
        self.judge(candidate, Verdict.ADMITTED, "the hypervolume grows", round_=round_)
        self.score(candidate, "validation", share, tokens=500.0)
        island = candidate.split(".", maxsplit=1)[0]
        self.add(RoundEnded(island=island, round=round_, stall=0, best_validation=share))

    def consult(self, island: str, round_: int, diagnosis: Diagnosis, *moves: object) -> None:
        refused = (Refusal(move=Reassign(island=island, mutator="x"), reason="not in the pool"),)
        self.add(
            Consulted(
                consultation=Consultation(
                    island=island,
                    round=round_,
                    diagnosis=diagnosis,
                    words=f"words about {island}",
                    moves=moves,  # type: ignore[arg-type]
                    refused=refused,
                ),
                usage=Usage(output=50, calls=1),
            )
        )


class StoryData:
    """A story as the report reads it."""

    def __init__(self, story: Story) -> None:
        self.story = story

    def records(self) -> Iterable[Record]:
        return self.story.records

    def outcomes(self) -> Iterable[Outcome]:
        return self.story.made

    def patch(self, candidate: str) -> str:
        return f"--- a/main.py\n+++ b/main.py\n@@ -1 +1 @@\n-old\n+new of {candidate}\n"


def seeds_only() -> Story:
    story = Story()
    story.start()
    for island, share in (("i1", 0.2), ("i2", 0.3), ("i3", 0.1)):
        story.seed_island(island, share)
    return story


def with_moves() -> Story:
    """Admission, rejection, an invalid child, and each of the four moves."""
    story = seeds_only()
    story.child("i1.1", "i1.0", share=0.5, round_=1, title="strip [fences] | pipes")
    story.child("i1.2", "i1.1", share=0.6, round_=2, title="show examples")
    story.propose("i2.1", "i2.0", title="a failed edit", usage=Usage(output=70, calls=1))
    story.score("i2.1", "search", 0.2)
    story.judge("i2.1", Verdict.REJECTED, "the hypervolume does not grow")
    story.propose("i3.1", "i3.0", title="a broken edit")
    story.judge("i3.1", Verdict.INVALID, "its smoke test fails")
    story.add(RoundEnded(island="i2", round=1, stall=3, best_validation=0.3))
    graft = Graft(island="i2", donor="i1", donor_candidate="i1.1")
    story.consult("i2", 1, Diagnosis.EXHAUSTED_LINEAGE, graft)
    story.add(MoveApplied(island="i2", round=2, move=graft))
    story.child("i2.2", "i2.0", "i1.1", share=0.8, round_=2, title="merge both")
    reassign = Reassign(island="i3", mutator="single_call")
    speciate = Speciate(island="i1", root="i1.1", mutator="operators", new_island="i4")
    story.consult("i3", 1, Diagnosis.DRY_MUTATOR, reassign, speciate)
    story.add(MoveApplied(island="i3", round=2, move=reassign))
    story.child("i3.2", "i3.0", share=0.4, round_=2)
    story.add(MoveApplied(island="i1", round=3, move=speciate))
    story.add(
        IslandFounded(
            island="i4",
            mutator="operators",
            root="i1.1",
            members=("i1.1",),
            source="i1",
            niche="s04",
            search=SEARCH,
        ),
        RoundEnded(island="i4", round=2, stall=0, best_validation=0.5),
    )
    curriculum = Curriculum(tasks=SEARCH[4:], epoch=1)
    story.consult("i4", 2, Diagnosis.PLATEAU, curriculum)
    story.add(MoveApplied(island="i4", round=3, move=curriculum))
    story.add(FrameFixed(island="i4", epoch=1, search=SEARCH[4:], frame=FRAME))
    return story


def finished(test_shares: tuple[float, float] | None = (0.75, 0.25)) -> Story:
    """The whole run; test shares of the winner and of the second seed, None leaves it unscored."""
    story = with_moves()
    story.add(IslandClosed(island="i1", round=3, reason="the budget is spent"))
    story.add(WinnerFrozen(candidate="i2.2", island="i2", rule="one_se", front=("i2.2", "i1.0")))
    if test_shares is not None:
        story.score("i2.2", "test", test_shares[0], tokens=500.0)
        story.score("i2.0", "test", test_shares[1])
        story.score("i1.0", "test", 0.0)
    story.add(RunEnded(reason="attempts are spent", searched=True))
    return story


@pytest.fixture
def make_story() -> Callable[[str], Story]:
    """Stories by name: seeds, moves, finished, untested, empty, unsearched."""

    def make(name: str) -> Story:
        match name:
            case "seeds":
                return seeds_only()
            case "moves":
                return with_moves()
            case "untested":
                return finished(None)
            case "close":
                return finished((0.3, 0.25))
            case "worse":
                return finished((0.0, 0.5))
            case "unsearched":
                story = seeds_only()
                story.add(
                    WinnerFrozen(candidate="i2.0", island="i2", rule="one_se", front=("i2.0",)),
                    RunEnded(reason="the budget is spent", searched=False),
                )
                return story
            case "seed_wins":
                story = with_moves()
                story.add(
                    WinnerFrozen(candidate="i2.0", island="i2", rule="one_se", front=("i2.0",)),
                    RunEnded(reason="rounds are spent", searched=True),
                )
                return story
            case "empty":
                return Story()
        return finished()

    return make


@pytest.fixture
def as_data() -> Callable[[Story], StoryData]:
    """A story as `RunData`."""
    return StoryData
