from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest

from milo.core.fitness import Fitness, Interval
from milo.core.moves import Curriculum, Graft, Reassign, Speciate
from milo.views import text


def test_an_accuracy_carries_its_interval() -> None:
    assert text.accuracy(Interval(0.612, 0.523, 0.701)) == "61.2 ± 8.9"
    assert text.accuracy(Interval(0.5, -math.inf, math.inf)) == "50.0 ± ?"
    assert text.accuracy(None) == text.DASH


def test_a_difference_is_signed_and_an_infinite_interval_is_unknown() -> None:
    assert (
        text.points_apart(Interval(0.24, 0.121, 0.359))
        == "+24.0 points, 95 % interval +12.1 to +35.9"
    )
    assert text.points_apart(Interval(-0.1, -math.inf, math.inf)).endswith("unknown")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0"),
        (950, "950"),
        (999.6, "1.0k"),
        (1400, "1.4k"),
        (999_990, "1.0M"),
        (23e6, "23.0M"),
        (2e9, "2.0G"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_counts_are_short(number: float | None, words: str) -> None:
    assert text.count(number) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.84, "0.84 s"),
        (12.34, "12.3 s"),
        (245, "4 min 05 s"),
        (11_220, "3 h 07 min"),
        (None, "–"),
        (math.inf, "–"),
    ],
)
def test_seconds_read_as_a_person_would_say_them(value: float | None, words: str) -> None:
    assert text.seconds(value) == words


def test_clocks_and_rough_times() -> None:
    assert [text.clock(s) for s in (-1, 65, 3725)] == ["0:00", "1:05", "1:02:05"]
    assert [text.rough(s) for s in (10, 45, 300, 7200)] == [
        "half a minute",
        "1 min",
        "5 min",
        "2.0 h",
    ]


def test_an_unknown_price_is_not_zero() -> None:
    assert text.dollars(None) == "unknown"
    assert [text.dollars(d) for d in (0, 0.0012, 3.456)] == ["$0.00", "$0.0012", "$3.46"]


def test_a_bar_never_overflows_and_is_empty_where_nothing_is_wanted() -> None:
    assert text.bar(5, 10, 4) == "██░░"
    assert text.bar(50, 10, 4) == "████"
    assert text.bar(0, 0, 4) == "░░░░"
    assert text.bar(-3, 10, 4) == "░░░░"


def test_ratios_and_fitness_say_what_is_missing() -> None:
    assert text.ratio(5, 4) == "× 1.25"
    assert text.ratio(5, 0) == text.ratio(None, 4) == text.DASH
    assert text.fitness(None) == "not scored"
    assert text.fitness(Fitness(0.5, 1500, 2.0)) == "50.0 %, 1.5k tokens, 2.00 s"


def test_shortening_keeps_one_line() -> None:
    assert text.shorten("a\n b", 10) == "a b"
    assert text.shorten("abcdefgh", 4) == "abc…"


def test_every_move_has_words() -> None:
    moves = (
        Reassign(island="i1", mutator="m"),
        Graft(island="i1", donor="i2", donor_candidate="i2.3"),
        Speciate(island="i1", root="i1.2", mutator="m", new_island="i4"),
        Curriculum(tasks=("a", "b"), epoch=1),
    )
    assert [text.move_words(m).split(":")[0] for m in moves] == [m.kind for m in moves]


@dataclass(frozen=True)
class _Sample:
    figure: float
    where: Interval
    names: frozenset[str]


def test_json_has_no_nan_and_no_infinity() -> None:
    sample = _Sample(math.nan, Interval(0.5, -math.inf, math.inf), frozenset({"b", "a"}))
    ready = text.json_ready({"x": [sample, (1, True, None)]})
    assert json.loads(json.dumps(ready, allow_nan=False)) == {
        "x": [
            {
                "figure": None,
                "where": {"mean": 0.5, "low": None, "high": None},
                "names": ["a", "b"],
            },
            [1, True, None],
        ]
    }


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no JSON form"):
        text.json_ready(object())
