"""The order in which attempts get slots."""

from __future__ import annotations

import numpy as np

from milo.core.attempt import AttemptKey
from milo.runtime.schedule import DEFAULT_SECONDS, Durations, Need, SlotQueue, Work


def work(
    evaluation: int, seconds: float, index: int = 0, *, island: str = "", gpus: int = 0
) -> Work:
    key = AttemptKey(harness=f"h{evaluation}", task="t", task_digest="d", model="m", index=index)
    return Work(key=key, evaluation=evaluation, expected_s=seconds, island=island, need=Need(gpus))


def drained(queue: SlotQueue) -> list[Work]:
    found = []
    while (item := queue.pop()) is not None:
        found.append(item)
    return found


def test_the_longest_expected_attempt_of_an_evaluation_goes_first() -> None:
    queue = SlotQueue()
    for seconds in (1.0, 5.0, 3.0):
        queue.push(work(1, seconds))
    assert [w.expected_s for w in drained(queue)] == [5.0, 3.0, 1.0]


def test_a_nearly_finished_evaluation_goes_before_one_that_was_only_started() -> None:
    queue = SlotQueue()
    for index in range(10):
        queue.push(work(1, 2.0, index=index))
    queue.push(work(2, 2.0))
    first = queue.pop()
    assert first is not None
    assert first.evaluation == 2


def test_a_large_evaluation_is_not_starved_by_a_stream_of_small_ones() -> None:
    queue = SlotQueue()
    for index in range(20):
        queue.push(work(0, 1.0, index=index))
    given = []
    for number in range(1, 200):
        queue.push(work(number, 1.0))
        item = queue.pop()
        assert item is not None
        given.append(item.evaluation)
    assert given.count(0) == 20


def test_everything_that_was_pushed_comes_out_once() -> None:
    rng = np.random.default_rng(1)
    queue = SlotQueue()
    pushed = [work(int(rng.integers(5)), float(rng.random()), index=i) for i in range(200)]
    for item in pushed:
        queue.push(item)
    assert len(queue) == 200
    assert sorted(w.key.index for w in drained(queue)) == list(range(200))
    assert len(queue) == 0


def test_islands_get_equal_seconds_whatever_the_length_and_number_of_their_attempts() -> None:
    queue = SlotQueue()
    for index in range(400):
        queue.push(work(index // 20, 1.0, index, island="many"))
        queue.push(work(100 + index, 5.0, index, island="long"))
    given = {"many": 0.0, "long": 0.0}
    for _ in range(300):
        item = queue.pop()
        assert item is not None
        given[item.island] += item.expected_s
    assert abs(given["many"] - given["long"]) <= 25.0


def test_an_island_that_was_away_neither_pays_for_it_nor_takes_everything_afterwards() -> None:
    queue = SlotQueue()
    for index in range(200):
        queue.push(work(index // 5, 1.0, index, island="steady"))
    for _ in range(100):
        queue.pop()
    for index in range(100):
        queue.push(work(100 + index // 5, 1.0, index, island="back"))
    given = [item.island for item in (queue.pop() for _ in range(40)) if item]
    assert 15 <= given.count("back") <= 25


def test_what_needs_a_gpu_waits_for_a_host_that_has_one_and_holds_up_nothing() -> None:
    queue = SlotQueue()
    queue.push(work(1, 9.0, 0, gpus=1))
    queue.push(work(1, 1.0, 1))
    without = [queue.pop(lambda need: need.fits(0, "")) for _ in range(2)]
    assert [item and item.key.index for item in without] == [1, None]
    item = queue.pop(lambda need: need.fits(1, "T4"))
    assert item is not None
    assert item.key.index == 0


def test_a_gpu_of_another_type_does_not_fit() -> None:
    need = Need(1, ("H100", "A100"))
    assert need.fits(1, "a100")
    assert not need.fits(1, "T4")
    assert not need.fits(0, "H100")
    assert Need().fits(0, "")


def test_clearing_gives_back_what_waited() -> None:
    queue = SlotQueue()
    queue.push(work(1, 1.0))
    assert [w.evaluation for w in queue.clear()] == [1]
    assert queue.pop() is None


def test_expected_durations_are_the_tasks_own_mean_or_that_of_all() -> None:
    durations = Durations()
    assert durations.expected("a") == DEFAULT_SECONDS
    durations.add("a", 2.0)
    durations.add("a", 4.0)
    durations.add("b", 9.0)
    assert durations.expected("a") == 3.0
    assert durations.expected("unseen") == 5.0
    durations.add("b", 1.0, 3)
    assert durations.expected("b") == 3.0


def test_an_island_whose_harnesses_are_slow_is_expected_to_be_slow() -> None:
    durations = Durations()
    durations.add("a", 2.0)
    for _ in range(4):
        durations.add("a", 1.0, island="quick")
        durations.add("a", 5.0, island="slow")
    assert durations.expected("a", "slow") > 3 * durations.expected("a", "quick")
    assert durations.expected("a", "new") == durations.expected("a")
    assert durations.expected("unseen", "slow") > durations.expected("unseen")
