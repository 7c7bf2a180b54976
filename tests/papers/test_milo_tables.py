"""What MILO's paper states about its leaderboards, by our comparison of two rows."""

from __future__ import annotations

import pytest
from tables import table

from milo.protocols.standing import Against, Figures, against

OPUS = {row["harness"]: row for row in table("milo_leaderboard_opus")}
OSS = {row["harness"]: row for row in table("milo_leaderboard_oss")}
SUITES = ("tb", "pb", "swe")
# Mean tokens per attempt (K) on the search split, round by round figure, gpt-oss-120b.
TOKENS_K = {"seed": 10.7, "MILO": 7.5, "EvoX": 15.6, "ShinkaEvolve": 15.0, "GEPA (prompt)": 11.7}
ABLATION = {"A": 76.4, "B": 79.1, "C": 79.3, "D": 80.5, "E": 86.1}


def figures(row: dict[str, str], suite: str, tokens: float = 1.0) -> Figures:
    """Shares, from the printed percentages."""
    return Figures(
        reward=float(row[f"{suite}_pr"]) / 100,
        resolved=float(row[f"{suite}_rr"]) / 100,
        tokens=tokens,
        latency_s=1.0,
    )


def over_seed(board: dict[str, dict[str, str]], name: str, suite: str) -> Against:
    return against(figures(board[name], suite), figures(board["Best-of-3"], suite))


def best_prior(board: dict[str, dict[str, str]], suite: str, metric: str) -> float:
    searched = [name for name, row in board.items() if row["kind"] == "searched"]
    return 100 * max(getattr(over_seed(board, name, suite), metric) for name in searched)


@pytest.mark.parametrize(
    ("suite", "gain", "prior"), [("tb", 12.0, 4.5), ("pb", 28.3, 18.3), ("swe", 10.3, 0.0)]
)
def test_resolution_gains_with_opus_are_as_stated(suite: str, gain: float, prior: float) -> None:
    assert 100 * over_seed(OPUS, "MILO", suite).resolved == pytest.approx(gain, abs=1e-6)
    assert best_prior(OPUS, suite, "resolved") == pytest.approx(prior, abs=1e-6)


@pytest.mark.parametrize(
    ("suite", "gain", "prior"), [("tb", 11.8, 8.2), ("pb", 8.6, 4.8), ("swe", 14.8, 0.1)]
)
def test_pass_rate_gains_with_gpt_oss_are_as_stated(suite: str, gain: float, prior: float) -> None:
    assert 100 * over_seed(OSS, "MILO", suite).reward == pytest.approx(gain, abs=1e-6)
    assert best_prior(OSS, suite, "reward") == pytest.approx(prior, abs=1e-6)


def test_deepswe_with_gpt_oss_is_twenty_times_the_initial_harness() -> None:
    ratio = over_seed(OSS, "MILO", "swe").reward_ratio
    assert ratio is not None and round(ratio, -1) == 20
    others = [float(row["swe_pr"]) for row in OSS.values() if row["kind"] == "searched"]
    assert max(others) < 1.0


def test_tokens_with_gpt_oss_are_as_stated() -> None:
    def stand(name: str) -> Against:
        seed = figures(OSS["Best-of-3"], "tb", TOKENS_K["seed"])
        return against(figures(OSS[name], "tb", TOKENS_K[name]), seed)

    milo, evox = stand("MILO"), stand("EvoX")
    assert milo.tokens_ratio == pytest.approx(0.70, abs=0.005)
    assert 100 * milo.resolved == pytest.approx(10.7, abs=1e-6)
    assert evox.tokens_ratio == pytest.approx(1.46, abs=0.005)
    assert 100 * evox.resolved == pytest.approx(6.1, abs=1e-6)


def test_three_quarters_of_the_tokens_are_a_quarter_fewer() -> None:
    seed = figures(OPUS["Best-of-3"], "tb", tokens=1.00)
    milo = against(figures(OPUS["MILO"], "tb", tokens=0.74), seed)
    assert milo.tokens_ratio == pytest.approx(0.74)
    assert round(100 * (1 - milo.tokens_ratio)) == 26
    assert 100 * milo.resolved == pytest.approx(12.0, abs=1e-6)


@pytest.mark.parametrize("metric", ["pass", "pr", "rr"])
def test_milo_leads_terminal_bench_with_opus_in_every_column(metric: str) -> None:
    column = {name: float(row[f"tb_{metric}"]) for name, row in OPUS.items()}
    assert max(column, key=lambda name: column[name]) == "MILO"


def test_expert_harnesses_do_not_consistently_beat_the_minimal_one() -> None:
    experts = [row for row in OPUS.values() if row["kind"] == "expert"]
    minimal = OPUS["Minimal harness"]
    assert sum(float(r["pb_rr"]) < float(minimal["pb_rr"]) for r in experts) == 7
    above = [float(r["swe_rr"]) - float(minimal["swe_rr"]) for r in experts]
    assert sum(gap > 0 for gap in above) == 6
    assert max(above) == pytest.approx(41.3)
    low = [r for r in OSS.values() if r["kind"] == "expert"]
    assert sum(float(r["tb_rr"]) < float(OSS["Minimal harness"]["tb_rr"]) for r in low) == 4


def test_every_mechanism_adds_and_the_orchestrator_adds_most() -> None:
    steps = [
        round(b - a, 1)
        for a, b in zip("ABCD", "BCDE", strict=True)
        for a, b in [(ABLATION[a], ABLATION[b])]
    ]
    assert steps == [2.7, 0.2, 1.2, 5.6]
    assert ABLATION["E"] == float(OPUS["MILO"]["tb_rr"])


def test_the_tight_output_cap_and_the_transfer_are_as_stated() -> None:
    def figure(resolved: float) -> Figures:
        return Figures(reward=resolved / 100, resolved=resolved / 100, tokens=1, latency_s=1)

    cap = against(figure(81.1), figure(34.4))
    assert 100 * cap.resolved == pytest.approx(46.7)
    frontier = against(figure(13.8), figure(5.2))
    assert frontier.reward_ratio == pytest.approx(2.7, abs=0.05)
    assert 100 * frontier.resolved == pytest.approx(8.6)
    assert 100 * against(figure(13.8), figure(10.0)).resolved == pytest.approx(3.8)
