"""The problems by name, with the arena's thresholds and what was published.

Values stand as they were printed, in the arena's tables and baselines or in the papers of their
authors. "arena" is the leader of September 2026, "arena May 2026" that of its table then (more
recent ones of those problems aren't known here).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from milo.suites.arena.problems import discrete, functions, points
from milo.suites.arena.problems.problem import Array, Direction, Problem, Published, Rejected

MIN, MAX = Direction.MINIMISE, Direction.MAXIMISE
AREA_FLOOR = 1e-3


def _published(**values: str) -> tuple[Published, ...]:
    return tuple(Published(who=who.replace("_", " "), printed=v) for who, v in values.items())


def _overlap() -> tuple[Problem, ...]:
    return (
        Problem(
            name="erdos-min-overlap",
            title="Erdős minimum overlap",
            direction=MIN,
            field="values",
            minimum_improvement=1e-7,
            read=functions.read_overlap,
            fast=functions.overlap_fast,
            direct=functions.overlap_direct,
            published=_published(
                Haugland="0.38092685343",
                AlphaEvolve="0.38092303511",
                TTT_Discover="0.38087532322",
                arena="0.3808586",
                MILO_paper="0.3808568",
            ),
        ),
    )


def _inequalities() -> tuple[Problem, ...]:
    return (
        Problem(
            name="first-autocorrelation-inequality",
            title="first autocorrelation inequality",
            direction=MIN,
            field="values",
            minimum_improvement=1e-8,
            read=functions.read_first,
            fast=functions.first_fast,
            direct=functions.first_direct,
            published=_published(
                Matolcsi_Vinuesa="1.50972015075",
                AlphaEvolve="1.50316355468",
                TTT_Discover="1.50286289826",
                arena="1.50274365",
                MILO_paper="1.50274360",
            ),
        ),
        Problem(
            name="second-autocorrelation-inequality",
            title="second autocorrelation inequality",
            direction=MAX,
            field="values",
            minimum_improvement=1e-5,
            read=functions.read_second,
            fast=functions.second_fast,
            direct=functions.second_direct,
            published=_published(AlphaEvolve="0.96102107778", arena_May_2026="0.962643"),
        ),
        Problem(
            name="third-autocorrelation-inequality",
            title="third autocorrelation inequality",
            direction=MIN,
            field="values",
            minimum_improvement=1e-5,
            read=functions.read_third,
            fast=functions.third_fast,
            direct=functions.third_direct,
            published=_published(
                AlphaEvolve="1.45564279537", arena="1.4508066", MILO_paper="1.4488860"
            ),
        ),
    )


Reader = Callable[[object, int], Array]
Objective = Callable[[Array], float]


def _of_size(
    name: str,
    title: str,
    direction: Direction,
    field: str,
    kind: tuple[Reader, int, Objective, Objective],
    minimum: float = 0.0,
    **published: str,
) -> Problem:
    read, count, fast, direct = kind
    return Problem(
        name=name,
        title=title,
        direction=direction,
        field=field,
        minimum_improvement=minimum,
        read=partial(_sized, read, count),
        fast=fast,
        direct=direct,
        published=_published(**published),
        floor=AREA_FLOOR if field == "points" else 0.0,
    )


def _sized(read: Reader, count: int, value: object) -> Array:
    return read(value, count)


def _geometry() -> tuple[Problem, ...]:
    def square(count: int) -> tuple[Reader, int, Objective, Objective]:
        return points.read_square_packing, count, points.radii_fast, points.radii_direct

    def convex(count: int) -> tuple[Reader, int, Objective, Objective]:
        return points.read_points, count, points.convex_fast, points.convex_direct

    rectangle = (points.read_rectangle_packing, 21, points.radii_fast, points.radii_direct)
    ratio = (points.read_plane, 16, points.ratio_fast, points.ratio_direct)
    triangle = (points.read_triangle, 11, points.triangle_fast, points.triangle_direct)
    sphere = (points.read_sphere, 282, points.energy_fast, points.energy_direct)
    return (
        _of_size(
            "circle-packing", "26 circles in a square", MAX, "circles", square(26),
            1e-10, AlphaEvolve="2.63586275641", TTT_Discover="2.63597739475",
            AlphaEvolve_later="2.6359830849176076",
        ),
        _of_size(
            "circle-packing-32", "32 circles in a square", MAX, "circles", square(32),
            AlphaEvolve="2.93794452621",
        ),
        _of_size(
            "circles-rectangle", "21 circles in a rectangle", MAX, "circles", rectangle, 1e-10,
            AlphaEvolve="2.3658321334167627", arena_May_2026="2.365832385",
        ),
        _of_size(
            "min-distance-ratio-2d", "distance ratio of 16 points", MIN, "vectors", ratio, 1e-7,
            AlphaEvolve="12.8892661120", arena_May_2026="12.889230",
        ),
        _of_size(
            "heilbronn-triangles", "Heilbronn, 11 points in a triangle", MAX, "points", triangle,
            1e-9, AlphaEvolve="0.0365298899",
        ),
        _of_size(
            "heilbronn-convex-13", "Heilbronn, 13 points, convex region", MAX, "points",
            convex(13), AlphaEvolve="0.0309368890",
        ),
        _of_size(
            "heilbronn-convex", "Heilbronn, 14 points, convex region", MAX, "points", convex(14),
            1e-10, AlphaEvolve="0.0278355715",
        ),
        _of_size(
            "thomson-problem", "Thomson, 282 charges", MIN, "vectors", sphere, 1e-6,
            AlphaEvolve="37147.29441846226",
        ),
    )  # fmt: skip


def _discrete() -> tuple[Problem, ...]:
    signs = (discrete.read_signs, 70, discrete.flat_fast, discrete.flat_direct)
    return (
        _of_size(
            "flat-polynomials", "flat polynomial, degree 69", MIN, "coefficients", signs, 1e-6,
            AlphaEvolve="1.3409252794557085", arena_May_2026="1.280932",
        ),
        Problem(
            name="difference-bases",
            title="difference basis",
            direction=MIN,
            field="set",
            minimum_improvement=1e-9,
            read=discrete.read_basis,
            fast=discrete.basis_fast,
            direct=discrete.basis_direct,
            published=_published(AlphaEvolve="2.639027469506608"),
        ),
    )  # fmt: skip


def problems() -> Mapping[str, Problem]:
    """All problems by name, in the order of the tables."""
    every = (*_overlap(), *_inequalities(), *_geometry(), *_discrete())
    return MappingProxyType({problem.name: problem for problem in every})


def candidate_of(problem: Problem, construction: Array) -> dict[str, object]:
    """The arena's JSON object of a construction, every number at full precision."""
    values = construction.tolist()
    if problem.field in ("set", "coefficients") and construction.ndim == 1:
        values = [int(one) if one.is_integer() else one for one in values]
    return {problem.field: values}


def parse(text: str) -> object:
    """The arena's JSON, with the sloppy forms (NaN, Infinity) and endless nesting refused."""
    try:
        return json.loads(text, parse_constant=_refused)
    except Rejected:
        raise
    except (ValueError, RecursionError) as error:
        raise Rejected(f"not JSON: {error}") from None


def _refused(word: str) -> object:
    raise Rejected(f"it holds {word}; only finite numbers are allowed")
