"""Known values of the arena's constructions, to all printed digits."""

from __future__ import annotations

import json
from decimal import Decimal
from importlib import resources

import pytest

from milo.suites.arena.problems.catalogue import problems
from milo.suites.arena.problems.problem import Published, verify

PRINTED = {
    "erdos_haugland_51": "0.38092685343",
    "erdos_alphaevolve_95": "0.38092303511",
    "erdos_ttt_600": "0.38087532322",
    "autocorr1_alphaevolve_600": "1.50529396844",
    "autocorr2_alphaevolve_50": "0.89627994416",
    "autocorr3_alphaevolve_400": "1.45564279537",
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_published_construction_has_its_printed_value(name: str) -> None:
    folder = resources.files("milo.suites.arena") / "constructions"
    data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    value = verify(problems()[data["problem"]], data).value
    # The second inequality is a lower bound and printed as its author cut it: within one unit.
    unit = Decimal(1).scaleb(Decimal(PRINTED[name]).as_tuple().exponent)
    assert abs(Decimal(value) - Decimal(PRINTED[name])) < unit
    assert value == pytest.approx(data["objective"], rel=1e-15)


def test_the_published_table_is_that_of_the_notes() -> None:
    table = {name: problem.published for name, problem in problems().items()}
    assert Published(who="AlphaEvolve", printed="2.63586275641") in table["circle-packing"]
    assert Published(who="TTT Discover", printed="0.38087532322") in table["erdos-min-overlap"]


def test_the_absolute_value_of_the_maximum_is_not_the_maximum_of_absolute_values() -> None:
    """|max(f*f)| is 1.4556 on AlphaEvolve's third construction; max|f*f| would be 4.334."""
    import numpy as np

    folder = resources.files("milo.suites.arena") / "constructions"
    data = json.loads((folder / "autocorr3_alphaevolve_400.json").read_text(encoding="utf-8"))
    f = np.array(data["values"])
    other = np.abs(np.convolve(f, f)).max() * 2 * len(f) / f.sum() ** 2
    assert round(float(other), 3) == 4.334
