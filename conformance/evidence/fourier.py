"""Fourier features: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.absolute import CELLS, POINTS, THREE, first_row
from .tools import Case, cases_of, reals
from .tools.deviation import Function, Real, after, always, argument, around, around_with, deviations_of, held, option
from .tools.hints import ALL_AXES, AXIS_ORDER, BRANCH, COORDINATES, EACH_ROW, KEEP_FLOAT32

USUAL: dict[str, Any] = {"unit": "half_turns", "arrangement": "wave coordinate band", "include": "first"}
SIZES: dict[str, Any] = {"c": 3, "K": 2}
UNSTORED = ("size/usual-k-259",)
KERNEL: tuple[dict[str, Any], ...] = (
    {"unit": "radians", "arrangement": "band wave coordinate", "include": "first"},
    {"unit": "half_turns", "arrangement": "wave coordinate band", "include": "none"},
)
KERNEL_SIZES: dict[str, Any] = {"c": 3, "K": 16}

OCTAVES = (1.0, 2.0, 4.0)
ODD = (0.75, 3.5)
EACH = ((1.0, 2.5, 4.0), (1.0, 1.75, 2.5))
SQUARE = ((1.0, 2.5, 4.0), (0.75, 1.75, 3.25), (0.5, 2.0, 5.5))  # as many bands as coordinates
NERF, PAPER, PERCEIVER, LUCIDRAINS, TIMM = (
    {"unit": unit, "arrangement": arrangement, "include": include}
    for unit, arrangement, include in (
        ("radians", "band wave coordinate", "first"),
        ("half_turns", "coordinate band wave", "none"),
        ("half_turns", "wave coordinate band", "first"),
        ("half_turns", "coordinate wave band", "by_coordinate"),
        ("half_turns", "wave band coordinate", "first"),
    )
)
GLIGEN = {**NERF, "include": "none"}
BOX = ((0.125, 0.1875, 0.75, 0.4375), (0, 0.5, 1, 0.9375))
_fourier = cases_of("fourier")


def _case(name: str, x: Any, bands: Any, params: dict[str, Any], comment: str = "", **rest: Any) -> Case:
    inputs = {"x": np.asarray(x), "bands": np.asarray(bands, dtype=np.float32).astype(np.float64)}
    return _fourier(name, params, inputs, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("nerf/small", POINTS, OCTAVES, NERF, tier="smoke"),
        _case("nerf/24-bits", reals("nerf", 4, 3, bits=24), 2.0 ** np.arange(6), NERF),
        _case("paper/true-size", ((0.6875, -0.31640625, 0.0546875),), 2.0 ** np.arange(10), PAPER),
        _case("perceiver/true-size", ((-1, 1), (0.0234375, -0.515625)),
              (np.linspace(1, 112, 64), np.linspace(1, 56, 64)), PERCEIVER, "64 bands up to half the resolution"),
        _case("lucidrains/cells", CELLS, ODD, LUCIDRAINS),
        _case("lucidrains/one-band", THREE, (1.25,), {**PAPER, "include": "by_coordinate"}),
        _case("timm/cells", CELLS, ODD, TIMM),
        _case("gligen/boxes", BOX, 100.0 ** (np.arange(8) / 8), GLIGEN, "x0, y0, x1, y1"),
        _case("whole/turns", ((1, -2, 3), (7, 0, 4)), (1.0, 2.0, 0.25, 0.5), {**PAPER, "unit": "turns"},
              "integers: quarters, halves and whole turns"),
        _case("whole/half-turns", ((1, -2), (255, 4097)), (1.0, 0.5, 1.5), PAPER),
        _case("forms/batch-one", (POINTS,), OCTAVES, NERF),
        _case("forms/one-coordinate", ((0.5,), (0.1875,), (3,)), OCTAVES, PAPER, "c = 1"),
        _case("forms/vector", (0.5, 0.1875, -0.75), ODD, NERF, "one point"),
        _case("square/two-turns", CELLS, ((0.75, 3.5), (1.25, 2.0)), {**LUCIDRAINS, "unit": "turns"}),
        _case("square/three-paper", THREE, SQUARE, PAPER),
        _case("square/octaves", THREE, OCTAVES, TIMM, "three bands of three coordinates, the same for all"),
        _case("refused/coordinates", POINTS, ((1.0, 2.0),) * 3, PERCEIVER, "bands of three coordinates", kind="reject"),
        _case("refused/three-axes", POINTS, (EACH,), PERCEIVER, "bands have one axis or two", kind="reject"),
        _case("refused/by-coordinate", POINTS, OCTAVES, {**NERF, "include": "by_coordinate"},
              "columns of a coordinate are not together", kind="reject"),
        _case("refused/order", POINTS, OCTAVES, {**NERF, "arrangement": "band coordinate"}, kind="reject"),
        _case("gradient/radians", POINTS, (1.0, 2.5), NERF, kind="vjp",
              cotangents={"out": reals("fourier radians", 3, 10) / 2}),
        _case("gradient/half-turns", POINTS, EACH, PERCEIVER, kind="vjp",
              cotangents={"out": reals("fourier half turns", 3, 14) / 2}),
        _case("gradient/turns", POINTS, OCTAVES, {**LUCIDRAINS, "unit": "turns"}, kind="vjp",
              cotangents={"out": reals("fourier turns", 3, 14) / 2}),
    )  # fmt: skip


PI = "NeRF's paper multiplies by pi, its code does not."
INCLUDED = "With `include` the coordinates themselves are the first columns."
BANDS = "Use the bands that are given, in their order."


@around_with
def _reordered(arrangement: str, function: Function, x: Any, bands: Any, /, *, include: str, **options: Any) -> Real:
    """Columns are always in one order, with coordinates where they fit it."""
    fits = include != "by_coordinate" or arrangement.startswith("coordinate")
    return function(x, bands, include=include, **(options | ({"arrangement": arrangement} if fits else {})))


@around
def _without(function: Function, x: Any, bands: Any, /, **options: Any) -> Real:
    """The coordinates are zero where they are to be included."""
    plain = function(x, bands, **options)
    c = x.shape[-1]
    if options["include"] == "first":
        return np.concatenate([0 * plain[..., :c], plain[..., c:]], axis=-1)
    return plain


_deviation = deviations_of("fourier")

DEVIATIONS = (
    _deviation("fourier-radians", "angles are not multiplied by pi or 2 pi", option(unit=always("radians")), hint=PI),
    _deviation("fourier-half-turns", "angles are always multiplied by pi", option(unit=always("half_turns")), hint=PI),
    _deviation("fourier-turns", "angles are always multiplied by 2 pi", option(unit=always("turns")), hint=BRANCH),
    _deviation("fourier-band-wave-coordinate", "columns always run over bands, waves and coordinates",
               _reordered("band wave coordinate"), hint="That is the order of NeRF's code."),
    _deviation("fourier-wave-coordinate-band", "columns always run over waves, coordinates and bands",
               _reordered("wave coordinate band"), hint="That is Perceiver's order."),
    _deviation("fourier-coordinate-band-wave", "columns always run over coordinates, bands and waves",
               _reordered("coordinate band wave"), hint="That is the order of NeRF's paper."),
    _deviation("fourier-coordinate-wave-band", "columns always run over coordinates, waves and bands",
               _reordered("coordinate wave band"), hint="That is perceiver-pytorch's order."),
    _deviation("fourier-wave-band-coordinate", "columns always run over waves, bands and coordinates",
               _reordered("wave band coordinate"), hint="That is timm's order."),
    _deviation("fourier-input-zero", "the columns of the coordinates themselves are zero", _without, hint=INCLUDED),
    _deviation("fourier-input-last", "the coordinates themselves are the last columns",
               after(lambda out, x, *b, **o: np.roll(out, -x.shape[-1], axis=-1) if o["include"] == "first" else out),
               hint=INCLUDED),
    _deviation("fourier-bands-of-first", "the bands of the first coordinate are used for all",
               argument(1, lambda bands: np.broadcast_to(bands[:1], np.shape(bands)) if np.ndim(bands) == 2 else bands),
               hint=ALL_AXES),
    _deviation("fourier-bands-reversed", "bands run from the last to the first", argument(1, lambda b: b[..., ::-1]),
               hint=BANDS),
    _deviation("fourier-octaves", "bands are always 1, 2, 4, ...",
               argument(1, lambda b: np.broadcast_to(2.0 ** np.arange(np.shape(b)[-1]), np.shape(b))), hint=BANDS),
    _deviation("fourier-coordinates-reversed", "coordinates are exchanged", argument(0, lambda x: x[..., ::-1]),
               hint=AXIS_ORDER),
    _deviation("fourier-bfloat16", "coordinates are held in bfloat16", held("bfloat16", 0), hint=COORDINATES),
    _deviation("fourier-bands-bfloat16", "bands are held in bfloat16", held("bfloat16", 1), hint=KEEP_FLOAT32),
    _deviation("fourier-first-row", "the first point is used for all", argument(0, first_row), hint=EACH_ROW),
)  # fmt: skip
