"""The strict converter between plain data and dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from milo.app.convert import build, flat, leaves, nearest, plain
from milo.core.errors import ConfigError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True, slots=True)
class Inner:
    share: float = 0.5
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Outer:
    count: int = 1
    colour: Colour = Colour.RED
    limit: float | None = None
    on: bool = False
    inner: Inner = field(default_factory=Inner)


def test_a_full_mapping_is_converted_with_its_types() -> None:
    data = {"count": 2, "colour": "blue", "limit": 3, "on": True, "inner": {"names": ["a", "b"]}}
    assert build(Outer, data) == Outer(
        count=2, colour=Colour.BLUE, limit=3.0, on=True, inner=Inner(names=("a", "b"))
    )


def test_absent_keys_keep_their_defaults() -> None:
    assert build(Outer, {}) == Outer()


def test_plain_data_inverts_conversion() -> None:
    one = Outer(colour=Colour.BLUE, limit=0.25, inner=Inner(names=("x",)))
    assert build(Outer, plain(one)) == one


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"cuont": 1}, ("cuont", "'count'")),
        ({"inner": {"shaer": 1}}, ("inner.shaer", "'inner.share'")),
        ({"inner": 3}, ("inner", "a mapping", "3 (int)")),
        ({"count": "2"}, ("count", "a whole number", "'2' (str)")),
        ({"count": True}, ("count", "a whole number", "True (bool)")),
        ({"on": 1}, ("on", "true or false", "1 (int)")),
        ({"limit": "x"}, ("limit", "a number or null", "'x' (str)")),
        ({"limit": False}, ("limit", "a number or null", "False (bool)")),
        ({"colour": "green"}, ("colour", "one of red, blue", "'green' (str)")),
        ({"colour": None}, ("colour", "one of red, blue", "null")),
        ({"inner": {"names": "ab"}}, ("inner.names", "a list", "'ab' (str)")),
        ({"inner": {"names": ["a", 2]}}, ("inner.names[1]", "text", "2 (int)")),
        ([], ("configuration", "a mapping")),
    ],
)
def test_what_does_not_fit_is_refused_by_key(data: object, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        build(Outer, data)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(ConfigError) as caught:
        build(Outer, {"count": "x" * 500})
    assert len(str(caught.value)) < 150


def test_leaves_and_flat_agree_on_keys() -> None:
    assert list(leaves(Outer)) == list(flat(Outer()))
    assert flat(Outer())["inner.share"] == 0.5


def test_the_nearest_word_may_be_none() -> None:
    assert nearest("qqqq", ["alpha", "beta"]) is None
    assert nearest("alhpa", ["alpha", "beta"]) == "alpha"
    assert nearest("share", ["inner.share", "count"]) == "inner.share"
