"""The leaderboard: what is compared, ranked, resolved, and what is said besides."""

from __future__ import annotations

import json

import numpy as np
import pytest
from protocol_scene import entry, outcome, scored

from milo.core.attempt import Usage
from milo.core.errors import RunError
from milo.protocols.entries import SearchCost
from milo.protocols.leaderboard import leaderboard
from milo.protocols.standing import Leaderboard, Pair
from milo.protocols.table import json_ready, leaderboard_text

GOOD = [[1.0, 1.0]] * 8 + [[1.0, 0.0]] * 2
POOR = [[0.0, 0.0]] * 8 + [[1.0, 0.0]] * 2
MIXED = [[1.0, 0.0]] * 5 + [[0.0, 1.0]] * 5


@pytest.fixture
def draws() -> np.random.Generator:
    return np.random.default_rng(3)


def pair(board: Leaderboard, first: str, second: str, metric: str = "PR") -> Pair:
    return next(
        p for p in board.pairs if {p.first, p.second} == {first, second} and p.metric == metric
    )


def test_rows_stand_from_the_best_down_beside_the_seed(draws: np.random.Generator) -> None:
    seed = scored("bare", POOR)
    board = leaderboard(
        [entry("d", scored("d", MIXED), [seed]), entry("e", scored("e", GOOD), [seed])], draws
    )
    assert [row.name for row in board.rows] == ["e", "d", "seed bare"]
    assert board.baseline == "seed bare" and board.tasks == 10
    best = board.rows[0]
    assert best.reward.mean == pytest.approx(0.9) and best.k == 2
    assert best.pass_at_k == 1.0 and best.pass_hat_k == pytest.approx(0.8)
    assert best.against is not None
    assert best.against.resolved == pytest.approx(0.8)
    assert best.against.tokens_ratio == 1.0
    assert best.searched_attempts == 50 and board.rows[2].searched_attempts is None


def test_a_large_difference_is_resolved_and_a_small_one_is_not(draws: np.random.Generator) -> None:
    close = [*MIXED[:9], [1.0, 1.0]]
    runs = [entry(n, scored(n, r)) for n, r in (("a", GOOD), ("b", MIXED), ("c", close))]
    board = leaderboard([*runs, entry("z", scored("z", POOR))], draws)
    assert pair(board, "a", "z").is_resolved
    assert not pair(board, "b", "c").is_resolved
    text = leaderboard_text(board)
    resolved, unresolved = text.split("unresolved")
    assert "a is above z" in resolved and "PR b − c" in unresolved


def test_p_values_are_adjusted_for_the_number_of_pairs(draws: np.random.Generator) -> None:
    runs = [entry(n, scored(n, r)) for n, r in (("a", GOOD), ("b", MIXED), ("c", POOR))]
    board = leaderboard(runs, draws)
    assert len(board.pairs) == 6
    assert all(p.adjusted_p >= p.p_value for p in board.pairs)
    smallest = min((p for p in board.pairs if p.metric == "PR"), key=lambda p: p.p_value)
    assert smallest.adjusted_p == pytest.approx(3 * smallest.p_value)


def test_only_tasks_that_every_row_has_measured_are_compared(draws: np.random.Generator) -> None:
    holes = scored("b", [[None, None], [0.0, None], *MIXED[2:]])
    board = leaderboard([entry("a", scored("a", GOOD)), entry("b", holes)], draws)
    assert board.tasks == 9
    assert any("9 of 10 tasks" in note for note in board.notes)
    row = next(row for row in board.rows if row.name == "b")
    assert row.coverage == pytest.approx(17 / 18)


def test_runs_on_other_tasks_can_not_be_compared(draws: np.random.Generator) -> None:
    other = scored("b", GOOD)
    moved = {(f"u{t}", d): o for (t, d), o in other.outcomes.items()}
    changed = type(other)(candidate="b.1", name="b", harness="tree of b", outcomes=moved)
    with pytest.raises(RunError, match="tasks that all of their winners were scored on"):
        leaderboard([entry("a", scored("a", GOOD)), entry("b", changed)], draws)


def test_a_task_whose_content_changed_is_another_task(draws: np.random.Generator) -> None:
    mine, theirs = scored("a", GOOD), scored("b", GOOD)
    edited = {(t, "edited" if t == "t0" else d): o for (t, d), o in theirs.outcomes.items()}
    other = type(theirs)(candidate="b.1", name="b", harness="tree of b", outcomes=edited)
    assert leaderboard([entry("a", mine), entry("b", other)], draws).tasks == 9


def test_runs_of_a_method_are_its_replicates(draws: np.random.Generator) -> None:
    runs = [
        entry(m, scored(f"{m}{s}", r), seed=s, run=f"runs/{m}{s}")
        for m, r in (("d", POOR), ("e", GOOD))
        for s in (1, 2, 3)
    ]
    board = leaderboard(runs, draws)
    assert [(row.name, row.runs) for row in board.rows] == [("e", 3), ("d", 3)]
    assert pair(board, "d", "e").is_resolved
    apart = leaderboard(runs, draws, each=True)
    assert [row.runs for row in apart.rows] == [1] * 6
    assert "e (e1)" in {row.name for row in apart.rows}


def test_methods_with_other_seeds_are_compared_without_pairing_runs(
    draws: np.random.Generator,
) -> None:
    def board(second: tuple[int, ...]) -> Leaderboard:
        runs = [entry("d", scored(f"d{s}", r), seed=s) for s, r in ((1, MIXED), (2, GOOD))]
        more = [
            entry("e", scored(f"e{s}", r), seed=s)
            for s, r in zip(second, (MIXED, GOOD), strict=True)
        ]
        return leaderboard([*runs, *more], draws)

    together, apart = pair(board((1, 2)), "d", "e"), pair(board((7, 8)), "d", "e")
    assert together.difference.mean == apart.difference.mean == 0
    assert apart.difference.half_width > together.difference.half_width


def test_an_unknown_price_is_not_free(draws: np.random.Generator) -> None:
    unpriced = scored("b", GOOD, usage=Usage(uncached_input=10, dollars=None))
    cost = SearchCost(attempts=1, usage=Usage(dollars=None), hours=0.1)
    board = leaderboard([entry("a", scored("a", GOOD)), entry("b", unpriced, cost=cost)], draws)
    row = next(row for row in board.rows if row.name == "b")
    assert row.figures.dollars is None and row.searched_dollars is None
    assert "0.0100" in leaderboard_text(board)


def test_what_makes_a_comparison_doubtful_is_said(draws: np.random.Generator) -> None:
    runs = [
        entry("a", scored("a", GOOD), model="m1", split="validation", ended=""),
        entry("b", scored("b", GOOD), model="m2", split="validation"),
    ]
    notes = " ".join(leaderboard(runs, draws).notes)
    for words in ("different models: m1, m2", "optimistic", "has not ended", "no baseline"):
        assert words in notes


def test_seeds_of_all_runs_are_pooled_and_one_without_scores_is_left_out(
    draws: np.random.Generator,
) -> None:
    bare, lame = scored("bare", POOR), scored("lame", [[None]] * 10)
    runs = [entry(n, scored(n, GOOD), [bare, lame]) for n in "ab"]
    board = leaderboard(runs, draws)
    seeds = [row for row in board.rows if not row.runs]
    assert [(row.name, row.k) for row in seeds] == [("seed bare", 4)]


def test_two_seeds_of_one_name_are_told_apart_by_their_content(draws: np.random.Generator) -> None:
    twins = [scored("bare", POOR), scored("bare", MIXED)]
    twins[1] = type(twins[1])(
        candidate="i2.0", name="bare", harness="another", outcomes=twins[1].outcomes
    )
    board = leaderboard([entry("a", scored("a", GOOD), twins)], draws)
    assert {r.name for r in board.rows} == {"a", "seed bare tree of ", "seed bare another"}


def test_the_json_form_holds_every_pair_and_no_infinity(draws: np.random.Generator) -> None:
    one = scored("a", [[1.0]])
    data = json_ready(leaderboard([entry("a", one), entry("b", scored("b", [[0.0]]))], draws))
    back = json.loads(json.dumps(data, allow_nan=False))
    assert back["rows"][0]["reward"]["low"] is None
    assert back["pairs"][0]["resolved"] is False


def test_a_resolved_attempt_counts_in_rr_only_where_it_is_full() -> None:
    half = outcome("h", "t", 0.5)
    assert not half.resolved
