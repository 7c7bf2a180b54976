"""Anchor harnesses: the constraints hold, and nothing allowed is better."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from milo.core.errors import UserError
from milo.protocols.anchors import choose_anchors, representation_error

points = st.integers(2, 8).flatmap(
    lambda n: arrays(float, (n, 2), elements=st.integers(0, 9).map(float))
)


def distances(features: np.ndarray) -> np.ndarray:
    return np.linalg.norm(features[:, None] - features[None, :], axis=2)


@given(points, st.data())
def test_no_other_choice_with_the_final_revision_represents_better(
    features: np.ndarray, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, len(features)))
    final = data.draw(st.integers(0, len(features) - 1))
    chosen = choose_anchors(features, n, final=final)
    assert final in chosen and len(chosen) == n
    distance = distances(features)
    for other in combinations(range(len(features)), n):
        if final in other:
            assert representation_error(distance, chosen) <= (
                representation_error(distance, other) + 1e-6
            )


def test_a_capability_seen_twice_is_kept_at_the_price_of_error() -> None:
    features = np.array([[0.0], [0.1], [5.0], [5.1], [9.0]])
    held = [frozenset({"memory"}), frozenset({"memory"}), frozenset(), frozenset(), frozenset()]
    assert choose_anchors(features, 2) == (0, 4)
    only = [frozenset(), frozenset(), frozenset({"retry"}), frozenset({"retry"}), frozenset()]
    assert choose_anchors(features, 2, capabilities=held) == (0, 4)
    assert choose_anchors(features, 2, capabilities=only)[0] in (2, 3)


def test_a_capability_seen_once_binds_nobody() -> None:
    features = np.array([[0.0], [0.1], [5.0], [9.0]])
    once = [frozenset(), frozenset(), frozenset({"retry"}), frozenset()]
    assert choose_anchors(features, 2, capabilities=once) == choose_anchors(features, 2)


def test_ties_in_error_go_to_the_more_diverse_choice() -> None:
    features = np.array([[0.0], [0.0], [1.0], [-1.0], [0.0]])
    assert choose_anchors(features, 3, final=4) == (2, 3, 4)


@pytest.mark.parametrize(("n", "final"), [(0, -1), (4, -1), (1, 7)])
def test_impossible_choices_are_refused(n: int, final: int) -> None:
    with pytest.raises(UserError, match="anchors"):
        choose_anchors(np.zeros((3, 1)), n, final=final)


def test_more_choices_than_can_be_tried_are_refused() -> None:
    with pytest.raises(UserError, match="choices"):
        choose_anchors(np.zeros((60, 1)), 20)
