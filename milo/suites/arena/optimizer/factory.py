"""The landscape of a problem, by name."""

from __future__ import annotations

from milo.suites.arena.optimizer.circles import Packing
from milo.suites.arena.optimizer.curves import (
    autocorrelation_curves,
    overlap_curves,
    second_curves,
)
from milo.suites.arena.optimizer.landscape import Landscape
from milo.suites.arena.optimizer.others import Basis, Charges, Signs
from milo.suites.arena.optimizer.plane import DistanceRatio, SmallestTriangle


def landscape_of(problem: str) -> Landscape:
    """The landscape of a problem of the catalogue; raises `KeyError` for another name."""
    made: dict[str, Landscape] = {
        "erdos-min-overlap": overlap_curves(),
        "first-autocorrelation-inequality": autocorrelation_curves(signed=False),
        "second-autocorrelation-inequality": second_curves(),
        "third-autocorrelation-inequality": autocorrelation_curves(signed=True),
        "circle-packing": Packing(),
        "circle-packing-32": Packing(),
        "circles-rectangle": Packing(free=True),
        "min-distance-ratio-2d": DistanceRatio(),
        "heilbronn-triangles": SmallestTriangle(hull=False),
        "heilbronn-convex-13": SmallestTriangle(hull=True),
        "heilbronn-convex": SmallestTriangle(hull=True),
        "thomson-problem": Charges(),
        "flat-polynomials": Signs(),
        "difference-bases": Basis(),
    }
    return made[problem]
