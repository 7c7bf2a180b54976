from __future__ import annotations

import numpy as np
import pytest
from island_driver import evaluation_of

from milo.core.hypervolume import Frame
from milo.core.plan import AdmissionPlan
from milo.search.admission import judge

TASKS = tuple(f"s{i:02}" for i in range(10))
FRAME = Frame(seed_accuracy=0.4, token_scale=100.0, latency_scale=1.0)
BY_EVIDENCE = AdmissionPlan()
PLAIN = AdmissionPlan(alpha=1.0)
PARENT = evaluation_of([0.33] * 10)


def decide(child, front=(PARENT,), plan=BY_EVIDENCE, frame=FRAME):
    return judge(child, front, TASKS, frame, plan, np.random.default_rng(1))


def test_a_clear_improvement_is_admitted_with_full_support():
    decision = decide(evaluation_of([1.0] * 10))
    assert decision.admitted
    assert decision.support == 1.0
    assert decision.gain > 0
    assert "holds in 100.0% of 200 bootstraps" in decision.reason


def test_a_copy_is_rejected_by_any_rule():
    for plan in (PLAIN, AdmissionPlan()):
        decision = decide(PARENT, plan=plan)
        assert not decision.admitted
        assert decision.gain == 0
        assert "a member is at least as accurate, cheap and fast" in decision.reason


def test_the_plain_rule_admits_any_growth():
    hair = evaluation_of([0.33] * 10, tokens=99.999)
    assert decide(hair, plan=PLAIN).admitted
    assert not decide(hair).admitted


def test_epsilon_asks_for_a_larger_gain():
    child = evaluation_of([0.67] * 10)
    gain = decide(child, plan=PLAIN).gain
    decision = decide(child, plan=AdmissionPlan(alpha=1.0, epsilon=gain))
    assert not decision.admitted
    assert "not above epsilon" in decision.reason
    assert decide(child, plan=AdmissionPlan(alpha=1.0, epsilon=gain * 0.99)).admitted


def test_an_established_saving_of_tokens_is_enough():
    decision = decide(evaluation_of([0.33] * 10, tokens=50.0), frame=low_frame())
    assert decision.admitted
    assert "tokens are established as lower than 1 of 1 members'" in decision.reason


@pytest.mark.parametrize(("saving", "admitted"), [(0.8, False), (0.7, True)])
def test_latency_counts_only_beyond_what_load_explains(saving, admitted):
    child = evaluation_of([0.33] * 10, latency=saving)
    assert decide(child, frame=low_frame()).admitted is admitted


def low_frame() -> Frame:
    return Frame(seed_accuracy=0.1, token_scale=100.0, latency_scale=1.0)


def test_a_cheap_child_that_does_nothing_is_outside_the_box():
    decision = decide(evaluation_of([0.0] * 10, tokens=1.0, latency=0.01))
    assert not decision.admitted
    assert "accuracy 0.000 is not above the reference 0.320" in decision.reason


def test_a_gain_on_one_task_is_no_evidence():
    decision = decide(evaluation_of([0.67, *[0.33] * 9]))
    assert decision.gain > 0
    assert not decision.admitted
    assert "needs 96.5%" in decision.reason


def test_a_trade_off_between_two_members_is_admitted():
    """More accurate than the cheap one, cheaper than the accurate one."""
    cheap, accurate = evaluation_of([0.33] * 10), evaluation_of([1.0] * 10, tokens=400.0)
    child = evaluation_of([0.67] * 10, tokens=200.0)
    assert decide(child, front=(cheap, accurate), frame=low_frame()).admitted


def test_the_decision_depends_on_the_generator_alone():
    child = evaluation_of([1.0, 0.67, 0.0, 0.67, 0.33, 0.67, 0.33, 0.33, 0.67, 0.33])
    assert decide(child) == decide(child)
    assert 0 < decide(child).support < 1


def test_an_empty_front_is_beaten_by_anything_inside_the_box():
    assert decide(evaluation_of([0.67] * 10), front=()).admitted


def test_an_incomplete_evaluation_is_a_mistake_of_the_caller():
    with pytest.raises(KeyError):
        decide(evaluation_of([1.0] * 9))
