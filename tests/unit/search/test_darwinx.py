"""DarwinX as a strategy: whole islands in a noisy world, and each of its parts alone."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from island_driver import SEARCH, VALIDATION, evaluation_of, score, seed_refs, setup_of
from search_scene import TASKS, Scene

from milo.core.events import CandidateScored, Change, Verdict
from milo.core.fitness import TaskScore
from milo.core.plan import (
    AdmissionKind,
    AdmissionPlan,
    MemoryKind,
    SelectionKind,
    SelectionPlan,
    Signal,
    StrategyPlan,
)
from milo.search.contract import assess, eligible, lineage_gain, solved, uncovered
from milo.search.guidance import guidance
from milo.search.island import Closed, Island, NeedChild, NeedConsultation, NeedRound, NeedScores
from milo.search.lineage_gain import GainSelection
from milo.search.merging import complementary_pair
from milo.search.preserving import probe_attempts
from milo.search.selection import selection_of


def darwinx(**admission: object) -> StrategyPlan:
    settings_: dict[str, object] = {"kind": AdmissionKind.PRESERVE, "delta": 1.0, "probe": 2}
    return StrategyPlan(
        name="darwinx",
        islands=1,
        selection=SelectionPlan(kind=SelectionKind.GAIN, beta=0.3),
        admission=AdmissionPlan(**{**settings_, **admission}),  # type: ignore[arg-type]
        merge=True,
        signals=tuple(Signal),
        orchestrator=False,
    )


class NoisyWorld:
    """One island whose harnesses solve each task with a chance that mutations move at random.

    An attempt's outcome depends on harness, task and index alone, as kept attempts do.
    """

    def __init__(self, strategy: StrategyPlan, *, seed: int, rounds: int, k: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.chances: dict[str, np.ndarray] = {}
        self.salt = seed
        self.asked: list[NeedScores] = []
        self.attempts: set[tuple[str, str, int]] = set()
        (root, *_) = seed_refs()
        tasks = len(SEARCH) + len(VALIDATION)
        self.chances[root.harness] = self.rng.choice([0.05, 0.95], tasks, p=[0.7, 0.3])
        setup = setup_of(strategy=strategy, seeds=(root,), rounds=rounds, k=k, run_seed=seed)
        self.setup = setup
        self.island, self.events = Island.found(setup, "m", root, SEARCH)

    def run(self) -> NoisyWorld:
        while self.step():
            pass
        return self

    def step(self) -> bool:
        need = self.island.ask()
        match need:
            case Closed():
                return False
            case NeedScores():
                self.asked.append(need)
                scores = {t: self.measured(need.harness, t, need.k) for t in need.tasks}
                self.events += self.island.scored(need.candidate, need.split, scores)
            case NeedChild():
                self.events += self.island.proposed(self.child(need), Change(title="edit"))
            case NeedRound():
                self.events += self.island.begin_round()
            case NeedConsultation():
                raise AssertionError("nobody to consult")
        return True

    def child(self, need: NeedChild) -> str:
        parents = [self.chances[self.island.lineage[p].harness] for p in need.parents]
        chances = np.max(parents, axis=0)
        moved = self.rng.random(len(chances)) < (0.2 if len(parents) == 1 else 0.05)
        harness = f"tree {need.candidate}"
        self.chances[harness] = np.where(moved, 1 - chances, chances)
        return harness

    def measured(self, harness: str, task: str, k: int) -> TaskScore:
        place = (*SEARCH, *VALIDATION).index(task)
        wins = 0
        for index in range(k):
            self.attempts.add((harness, task, index))
            key = [self.salt, zlib.crc32(harness.encode()), place, index]
            wins += np.random.default_rng(key).random() < self.chances[harness][place]
        return score(wins / k, n=k)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 1.0, 2.5]), st.integers(0, 2))
@settings(max_examples=25, deadline=None)
def test_no_promoted_child_loses_more_than_delta_on_what_its_parent_solves_as_measured(
    seed: int, delta: float, probe: int
) -> None:
    """DarwinX's contract at the end of a run, whatever was measured again meanwhile."""
    world = NoisyWorld(darwinx(delta=delta, probe=probe), seed=seed, rounds=12).run()
    lineage = world.island.lineage
    for node in lineage:
        if node.verdict is not Verdict.ADMITTED or len(node.parents) != 1:
            continue
        parent = lineage[node.parents[0]].evaluation("search")
        mine = node.evaluation("search")
        lost = sum(max(0.0, parent[t].reward - mine[t].reward) for t in solved(parent, SEARCH))
        assert lost <= delta + 1e-6, node.reason
        assert node.gain > 0


@given(st.integers(0, 10_000), st.integers(0, 2))
@settings(max_examples=25, deadline=None)
def test_a_merge_is_kept_exactly_where_it_covers_what_its_parents_solve(
    seed: int, probe: int
) -> None:
    world = NoisyWorld(darwinx(probe=probe), seed=seed, rounds=14).run()
    lineage = world.island.lineage
    for node in lineage:
        if len(node.parents) < 2 or node.verdict is None:
            continue
        parents = [lineage[p].evaluation("search") for p in node.parents]
        lost = uncovered(node.evaluation("search"), parents, SEARCH)
        if node.verdict is Verdict.ADMITTED:
            assert not lost
        else:
            assert node.verdict is Verdict.REJECTED and "lost" in node.reason


def test_merges_happen_and_some_are_kept() -> None:
    """Without this the property above would hold of nothing."""
    kept = lost = promoted = 0
    for seed in range(12):
        for node in NoisyWorld(darwinx(), seed=seed, rounds=14).run().island.lineage:
            if len(node.parents) > 1:
                kept += node.verdict is Verdict.ADMITTED
                lost += node.verdict is Verdict.REJECTED
            elif node.parents:
                promoted += node.verdict is Verdict.ADMITTED
    assert kept >= 3 and lost >= 3 and promoted >= 5


@pytest.mark.parametrize("seed", range(4))
def test_a_probe_measures_what_is_at_stake_again_on_parent_and_child(seed: int) -> None:
    world = NoisyWorld(darwinx(), seed=seed, rounds=10).run()
    again = [need for need in world.asked if need.k > 1]
    lineage = world.island.lineage
    assert again and all(need.k == 3 and need.split == "search" for need in again)
    for node in lineage:
        if node.verdict is Verdict.ADMITTED and node.parents:
            for parent in node.parents:
                scores = lineage[parent].evaluation("search")
                for task in solved(scores, SEARCH):
                    assert scores[task].n == 3
                    assert node.evaluation("search")[task].n == 3


def test_no_probe_is_paid_for_a_child_that_fails_already() -> None:
    scored_first: dict[str, Mapping[str, TaskScore]] = {}
    world = NoisyWorld(darwinx(delta=0.0), seed=5, rounds=12).run()
    for event in world.events:
        if isinstance(event, CandidateScored) and event.split == "search":
            scored_first.setdefault(event.candidate, event.scores)
    probed = {need.candidate for need in world.asked if need.k > 1}
    hopeless = [
        node.candidate
        for node in world.island.lineage
        if len(node.parents) == 1
        and assess(
            scored_first[node.candidate],
            world.island.lineage[node.parents[0]].evaluation("search"),
            SEARCH,
        ).gain
        <= 0
        and not world.island.lineage.children(node.candidate)
    ]
    assert hopeless and not probed & set(hopeless)


@pytest.mark.parametrize("seed", [1, 2])
def test_an_island_cut_anywhere_ends_with_the_same_lineage(seed: int) -> None:
    whole = NoisyWorld(darwinx(), seed=seed, rounds=8).run()
    for cut in range(2, len(whole.events), 3):
        island = Island.restore(whole.setup, whole.events[:cut])
        other = NoisyWorld(darwinx(), seed=seed, rounds=8)
        other.chances, other.island = dict(whole.chances), island
        other.events = [*whole.events[:cut], *island.settle()]
        other.child = lambda need: f"tree {need.candidate}"  # type: ignore[method-assign]
        other.run()
        assert other.events == whole.events


def test_attempts_stay_within_what_a_child_is_priced_at() -> None:
    strategy = darwinx()
    world = NoisyWorld(strategy, seed=3, rounds=10)
    limit = len(SEARCH) + len(VALIDATION) + probe_attempts(strategy, len(SEARCH), 1)
    spent: list[int] = []
    while True:
        before = len(world.attempts)
        rounds = world.island.state.round
        if not world.step():
            break
        if world.island.state.round >= 0:
            if rounds != world.island.state.round:
                spent.append(0)
            spent[-1] += len(world.attempts) - before
    assert max(spent) <= limit
    assert probe_attempts(replace(strategy, merge=False), 10, 2) == 2 * 10 * 2 * 2
    assert probe_attempts(StrategyPlan(), 10, 2) == 0


# --- the parts alone ------------------------------------------------------------------------------


def archive() -> Scene:
    """A seed, an improver (promoted), a neutral child, a stepping stone and a trade."""
    scene = Scene().island("i1", [1, 1, 0, 0, 0, 0])
    scene.candidate("i1.1", ("i1.0",), [1, 1, 1, 0, 0, 0], Verdict.ADMITTED)
    scene.candidate("i1.2", ("i1.0",), [1, 1, 1 / 3, 0, 0, 0], Verdict.REJECTED)
    scene.candidate("i1.3", ("i1.0",), [1, 0, 0, 0, 0, 0], Verdict.REJECTED)
    scene.candidate("i1.4", ("i1.0",), [1, 0, 0, 1, 1, 1], Verdict.REJECTED)
    return scene


def test_lineage_gain_adds_up_along_the_path() -> None:
    scene = archive().candidate("i1.5", ("i1.1",), [1, 1, 1, 1, 1 / 3, 0], Verdict.ADMITTED)
    lineage = scene.lineage
    assert lineage_gain("i1.0", lineage, TASKS) == 0
    assert lineage_gain("i1.1", lineage, TASKS) == 1
    assert lineage_gain("i1.5", lineage, TASKS) == pytest.approx(1 + 4 / 3)


def test_only_children_that_preserve_are_parents_when_broadening() -> None:
    scene = archive()
    assert eligible(("i1.0", "i1.1"), scene.lineage, TASKS) == ("i1.0", "i1.1", "i1.2")


def test_without_broadening_the_highest_gain_among_the_confirmed_is_chosen() -> None:
    scene = archive()
    chosen = {
        GainSelection(beta=0.0).choose(
            ("i1.0", "i1.1"), scene.lineage, TASKS, np.random.default_rng(i)
        )
        for i in range(20)
    }
    assert chosen == {"i1.1"}


def test_broadening_draws_evenly_from_all_that_preserve(rng: np.random.Generator) -> None:
    lineage = archive().lineage
    select = selection_of(SelectionPlan(kind=SelectionKind.GAIN, beta=1.0))
    chosen = [select.choose(("i1.0", "i1.1"), lineage, TASKS, rng) for _ in range(600)]
    counts = [chosen.count(c) for c in ("i1.0", "i1.1", "i1.2")]
    assert sum(counts) == 600 and min(counts) > 150


def test_an_unmeasured_member_is_never_exploited_before_a_measured_one(
    rng: np.random.Generator,
) -> None:
    scene = Scene().island("i1", [0, 0, 0, 0, 0, 0])
    scene.candidate("i1.1", ("i1.0",), [], Verdict.ADMITTED)
    assert GainSelection(beta=0.0).choose(("i1.1", "i1.0"), scene.lineage, TASKS, rng) == "i1.0"


def test_a_pair_that_covers_most_together_is_merged_once() -> None:
    scene = Scene().island("i1", [1, 0, 0, 0, 0, 0])
    scene.candidate("i1.1", ("i1.0",), [1, 1, 0, 0, 0, 0], Verdict.ADMITTED)
    scene.candidate("i1.2", ("i1.0",), [1, 0, 1, 1, 0, 0], Verdict.ADMITTED)
    scene.candidate("i1.3", ("i1.0",), [1, 0, 0, 0, 1, 0], Verdict.ADMITTED)
    members = ("i1.0", "i1.1", "i1.2", "i1.3")
    pair = complementary_pair(members, scene.lineage, TASKS, "i1.3")
    assert pair == ("i1.2", "i1.1")
    scene.candidate("i1.4", pair, [1, 0, 0, 0, 0, 0], Verdict.REJECTED)
    assert complementary_pair(members, scene.lineage, TASKS, "i1.4") == ()
    assert complementary_pair(members, scene.lineage, TASKS, "i1.3") == ("i1.2", "i1.3")


def test_nothing_is_merged_where_one_solves_all_that_the_others_do() -> None:
    scene = Scene().island("i1", [1, 0, 0, 0, 0, 0])
    scene.candidate("i1.1", ("i1.0",), [1, 1, 1, 0, 0, 0], Verdict.ADMITTED)
    assert complementary_pair(("i1.0", "i1.1"), scene.lineage, TASKS, "") == ()


def test_the_three_signals_name_failures_teachers_and_unsteady_tasks() -> None:
    scene = archive()
    scene.apply(
        CandidateScored(
            island="i1", candidate="i1.1", split="search", scores=evaluation_of([1, 1, 1, 1 / 3])
        )
    )
    found = guidance(darwinx(), scene.lineage, ("i1.1",), TASKS)
    lines = found.signals.splitlines()
    assert lines[0].startswith("Failure-derived: it fails s03, s04, s05")
    assert lines[1].startswith("Teacher-derived: i1.4 solves s03, s04, s05")
    assert lines[2].startswith("Self-derived: it both passes and fails s03")
    assert found.library == ("i1.4",)


def test_a_signal_without_evidence_says_nothing() -> None:
    scene = Scene().island("i1", [1, 1, 1, 1, 1, 1])
    assert guidance(darwinx(), scene.lineage, ("i1.0",), TASKS).signals == ""
    alone = replace(darwinx(), signals=(Signal.SELF,))
    assert guidance(alone, archive().lineage, ("i1.0",), TASKS).signals == ""


def test_many_failures_are_counted_and_not_all_listed() -> None:
    tasks = tuple(f"s{i:02}" for i in range(9))
    scene = Scene().island("i1", [0] * 9)
    only = replace(darwinx(), signals=(Signal.FAILURE,))
    words = guidance(only, scene.lineage, ("i1.0",), tasks).signals
    assert "s05 and 3 more tasks" in words


def test_the_archive_holds_every_earlier_scored_candidate_but_the_parents() -> None:
    scene = archive()
    scene.candidate("i1.5", ("i1.0",), [], Verdict.INVALID, harness="")
    plan = StrategyPlan(memory=MemoryKind.ARCHIVE)
    found = guidance(plan, scene.lineage, ("i1.1",), TASKS)
    assert found.library == ("i1.0", "i1.2", "i1.3", "i1.4")
    assert "all 4 earlier candidates" in found.signals
    lone = Scene().island("i1", [0] * 6)
    assert guidance(plan, lone.lineage, ("i1.0",), TASKS).library == ()


def test_the_default_strategy_gets_no_guidance() -> None:
    found = guidance(StrategyPlan(), archive().lineage, ("i1.1",), TASKS)
    assert (found.signals, found.library) == ("", ())


def test_a_probe_that_finds_no_valid_attempt_is_given_up_after_three_asks() -> None:
    world = NoisyWorld(darwinx(), seed=0, rounds=10)
    while not (isinstance(need := world.island.ask(), NeedScores) and need.k > 1):
        assert world.step()
    for _ in range(3):
        assert world.island.ask() == need
        world.events += world.island.scored(need.candidate, need.split, {}, need.tasks)
    assert world.island.ask() != need


def test_one_part_is_swapped_by_one_key() -> None:
    """The front rule under DarwinX's other parts, and the contract under MILO's."""
    swapped = replace(darwinx(), admission=AdmissionPlan(alpha=1.0))
    world = NoisyWorld(swapped, seed=2, rounds=6).run()
    assert all("hypervolume" in n.reason for n in world.island.lineage if _is_judged_child(n))
    milo = StrategyPlan(admission=darwinx().admission, orchestrator=False)
    other = NoisyWorld(milo, seed=2, rounds=6).run()
    assert all("net gain" in n.reason for n in other.island.lineage if _is_judged_child(n))


def _is_judged_child(node: object) -> bool:
    return bool(getattr(node, "parents", ())) and getattr(node, "verdict", None) is not None
