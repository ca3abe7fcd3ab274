"""Cases of Fourier features: at given bands, and of random projections."""

from typing import Any

import numpy as np

from posref.absolute.fourier import ORDERS

from ..model import Case, Flag
from .forms import reals
from .making import cases_of

FLAGS = {
    "fourier-unit": Flag("pi or 2 pi left out, or multiplied in where it does not belong"),
    "fourier-order": Flag("columns in another order of coordinates, bands, sines and cosines"),
    "fourier-include": Flag("the coordinates themselves left out, or in another place"),
    "fourier-bands": Flag("every coordinate at the bands of the first, or bands in another order"),
    "fourier-whole": Flag("whole half turns not recognised: sines of 1e-7 grow where many bands are summed"),
    "fourier-precision": Flag("coordinates or bands in half precision: 2^9 x is off by turns"),
    "fourier-true-size": Flag("a model's own bands and order not reproduced"),
    "fourier-rows": Flag("the first row's points used for the whole batch"),
    "fourier-empty": Flag("no points, bands or coordinates: a crash or a wrong shape"),
    "fourier-refuse": Flag("bands or points that do not fit accepted"),
    "fourier-gradient": Flag("the gradient of bands without its coordinate, or of the other wave"),
    "random-fourier-unit": Flag("2 pi left out, or pi in its place"),
    "random-fourier-layout": Flag("cosines first where sines are, or the reverse"),
    "random-fourier-axes": Flag("the matrix applied to (y, x), or transposed"),
    "random-fourier-precision": Flag("points or matrix in half precision"),
    "random-fourier-true-size": Flag("a model's own number of features and scale not reproduced"),
    "random-fourier-rows": Flag("the first point used for all"),
    "random-fourier-empty": Flag("no points: a crash or a wrong shape"),
    "random-fourier-refuse": Flag("a matrix that does not fit accepted"),
    "random-fourier-gradient": Flag("the gradient of the matrix without its coordinate, or of the other wave"),
}

POINTS = ((0.5, -0.25), (0.125, 0.9375), (-1, 0.75))
CELLS = ((-1, -0.5), (-0.5, 1), (0, 0.25), (1, -1))
THREE = ((0.5, -0.25, 1.5), (0.1875, 0.9375, -2))
OCTAVES = (1.0, 2.0, 4.0)
ODD = (0.75, 3.5)
EACH = ((1.0, 2.5, 4.0), (1.0, 1.75, 2.5))
NERF, PAPER, PERCEIVER, LUCIDRAINS, TIMM = (
    {"unit": unit, "order": order, "include": include}
    for unit, order, include in (
        ("radians", "band wave coordinate", "first"),
        ("half_turns", "coordinate band wave", "none"),
        ("half_turns", "wave coordinate band", "first"),
        ("half_turns", "coordinate wave band", "by_coordinate"),
        ("half_turns", "wave band coordinate", "first"),
    )
)
GLIGEN = {**NERF, "include": "none"}
BOX = ((0.125, 0.1875, 0.75, 0.4375), (0, 0.5, 1, 0.9375))

_fourier = cases_of("fourier", "fourier-")
_form = cases_of("fourier")


def _of(name: str, flags: str, x: Any, bands: Any, params: dict[str, Any], comment: str = "", **rest: Any) -> Case:
    make = _form if name.startswith("forms/") else _fourier
    inputs = {"x": np.asarray(x), "bands": np.asarray(bands, dtype=np.float32).astype(np.float64)}
    return make(name, flags, params, inputs, comment, **rest)


def _ordered(order: str) -> tuple[Case, ...]:
    """Return what every order is asked."""
    name = order.replace(" ", "-")
    params = {"unit": "radians", "order": order, "include": "none"}
    return (
        _of(f"order/{name}", "order", THREE, ODD, params),
        _of(f"order/{name}-turns", "order unit bands", POINTS, EACH, {**params, "unit": "turns"}),
        _of(f"order/{name}-first", "order include unit", POINTS, OCTAVES, {**params, "unit": "half_turns", "include": "first"}),
    )


FEATURES = (
    _of("nerf/small", "order include unit", POINTS, OCTAVES, NERF, tier="smoke"),
    _of("nerf/points", "true-size precision", ((1.25, -0.6875, 2.4375), (-3.5, 0.0625, 1.1875)), 2.0 ** np.arange(10), NERF,
        "ten octaves of points"),
    _of("nerf/directions", "true-size", ((0.6015625, -0.796875, 0.0546875),), 2.0 ** np.arange(4), NERF),
    _of("nerf/24-bits", "precision", reals("nerf", 4, 3, bits=24), 2.0 ** np.arange(6), NERF),
    _of("nerf/linear", "bands", POINTS, (1.0, 2.75, 4.5, 6.25), NERF, "log_sampling=False"),
    _of("paper/small", "unit order whole", POINTS, OCTAVES, PAPER),
    _of("paper/true-size", "true-size precision unit", ((0.6875, -0.31640625, 0.0546875),), 2.0 ** np.arange(10), PAPER),
    _of("perceiver/cells", "bands whole include order", CELLS, EACH, PERCEIVER, "a band of its own for each axis"),
    _of("perceiver/true-size", "true-size whole bands", ((-1, 1), (0.0234375, -0.515625)),
        (np.linspace(1, 112, 64), np.linspace(1, 56, 64)), PERCEIVER, "64 bands up to half the resolution"),
    _of("lucidrains/cells", "include order whole", CELLS, ODD, LUCIDRAINS),
    _of("lucidrains/each", "include bands order", POINTS, EACH, {**LUCIDRAINS, "unit": "radians"}),
    _of("lucidrains/interleaved", "include order", THREE, OCTAVES, {**PAPER, "include": "by_coordinate"}),
    _of("lucidrains/one-band", "include order", THREE, (1.25,), {**PAPER, "include": "by_coordinate"}),
    _of("timm/cells", "order whole include", CELLS, ODD, TIMM),
    _of("gligen/boxes", "true-size unit order", BOX, 100.0 ** (np.arange(8) / 8), GLIGEN, "x0, y0, x1, y1"),
    _of("gligen/rows", "rows order", (BOX, BOX[::-1]), (1.0, 10.0), GLIGEN, "(B, N, 4)"),
    _of("whole/turns", "whole unit", ((1, -2, 3), (7, 0, 4)), (1.0, 2.0, 0.25, 0.5), {**PAPER, "unit": "turns"},
        "integers: quarters, halves and whole turns"),
    _of("whole/half-turns", "whole unit", ((1, -2), (255, 4097)), (1.0, 0.5, 1.5), PAPER),
    _of("whole/far", "whole precision", ((1048575, 65537, 2049),), (1.0, 0.125, 0.0625), PAPER),
    *(case for order in ORDERS for case in _ordered(order)),
    _of("forms/strided", "non-contiguous", (POINTS, CELLS[:3]), OCTAVES, NERF),
    _of("forms/strided-each", "non-contiguous", CELLS, EACH, PERCEIVER),
    _of("forms/expanded", "broadcast-view", (POINTS,) * 2, OCTAVES, NERF),
    _of("forms/batch-one", "batch-one", (POINTS,), OCTAVES, NERF),
    _of("forms/one-point", "length-one", ((0.5, 0.1875, -0.75),), ODD, NERF),
    _of("forms/one-coordinate", "length-one", ((0.5,), (0.1875,), (3,)), OCTAVES, PAPER, "c = 1"),
    _of("forms/vector", "fourier-rows", (0.5, 0.1875, -0.75), ODD, NERF, "one point"),
    _of("forms/vector-each", "fourier-rows", (0.5, -0.75), EACH, PERCEIVER, "one point"),
    _of("empty/points", "empty", np.zeros((0, 2)), OCTAVES, NERF),
    _of("empty/rows", "empty", np.zeros((2, 0, 3)), OCTAVES, PAPER),
    _of("empty/bands", "empty include", POINTS, np.zeros(0), NERF, "x alone is left"),
    _of("empty/bands-each", "empty include", POINTS, np.zeros((2, 0)), LUCIDRAINS, "x alone is left"),
    _of("refused/coordinates", "refuse", POINTS, ((1.0, 2.0),) * 3, PERCEIVER, "bands of three coordinates", kind="reject"),
    _of("refused/three-axes", "refuse", POINTS, (EACH,), PERCEIVER, "bands have one axis or two", kind="reject"),
    _of("refused/by-coordinate", "refuse include", POINTS, OCTAVES, {**NERF, "include": "by_coordinate"},
        "columns of a coordinate are not together", kind="reject"),
    _of("refused/order", "refuse order", POINTS, OCTAVES, {**NERF, "order": "band coordinate"}, kind="reject"),
    _of("gradient/radians", "gradient unit", POINTS, (1.0, 2.5), NERF, kind="vjp",
        cotangents={"out": reals("fourier radians", 3, 10) / 2}),
    _of("gradient/half-turns", "gradient unit bands", POINTS, EACH, PERCEIVER, kind="vjp",
        cotangents={"out": reals("fourier half turns", 3, 14) / 2}),
    _of("gradient/turns", "gradient unit", POINTS, OCTAVES, {**LUCIDRAINS, "unit": "turns"}, kind="vjp",
        cotangents={"out": reals("fourier turns", 3, 14) / 2}),
)  # fmt: skip

_random = cases_of("random_fourier", "random-fourier-")
_random_form = cases_of("random_fourier")


def _drawn(
    name: str, flags: str, x: Any, m: int, layout: str = "sin_cos", comment: str = "", *, bits: int = 8, by: float = 1.0,
    **rest: Any,
) -> Case:  # fmt: skip
    """Return a case with a matrix of m columns, whose numbers are multiplied by a power of two."""
    make = _random_form if name.startswith("forms/") else _random
    x = np.asarray(x)
    inputs = {"x": x, "matrix": reals(f"random fourier {name}", x.shape[-1], m, bits=bits) * by}
    return make(name, flags, {"layout": layout}, inputs, comment, **rest)


LEVELS = ((-4.625,), (0.6931471824645996,), (3.90625,))
RANDOM = (
    _drawn("sam/small", "unit layout axes", POINTS, 5, tier="smoke"),
    _drawn("sam/pixels", "axes precision", ((-0.4990234375, -0.498046875), (0.998046875, -0.33203125)), 7, bits=24),
    _drawn("sam/true-size", "true-size axes", ((-0.984375, 0.609375), (0.0234375, -0.515625)), 128, comment="128 columns"),
    _drawn("sam/rows", "rows", (POINTS, CELLS[:3]), 6, comment="(B, N, 2)"),
    _drawn("sam/square", "axes unit", POINTS, 2, comment="the matrix is square"),
    _drawn("paper/small", "layout unit", THREE, 6, "cos_sin"),
    _drawn("paper/square", "axes layout", THREE, 3, "cos_sin", "the matrix is square"),
    _drawn("paper/wide", "precision layout", reals("random", 4, 2, bits=24) / 4, 10, "cos_sin", "a scale of 16", by=8.0),
    _drawn("levels/score", "true-size unit precision", LEVELS, 128, comment="logarithms of noise levels; scale 16", by=8.0),
    _drawn("levels/24-bits", "precision", LEVELS, 9, bits=24, by=4.0),
    _drawn("levels/flipped", "layout", LEVELS, 6, "cos_sin"),
    _drawn("levels/vector", "rows", (0.5,), 6, comment="one level"),
    _drawn("empty/points", "empty", np.zeros((0, 2)), 3),
    _drawn("empty/rows", "empty", np.zeros((2, 0, 3)), 4, "cos_sin"),
    _drawn("empty/columns", "empty", POINTS, 0),
    _drawn("empty/columns-flipped", "empty", THREE, 0, "cos_sin"),
    _drawn("forms/strided", "non-contiguous", (POINTS, CELLS[:3]), 4),
    _drawn("forms/strided-flipped", "non-contiguous", THREE, 5, "cos_sin"),
    _drawn("forms/expanded", "broadcast-view", (POINTS,) * 2, 3),
    _drawn("forms/batch-one", "batch-one", (POINTS,), 5),
    _drawn("forms/one-point", "length-one", ((0.5, 0.1875, -0.75),), 4),
    _drawn("forms/one-column", "length-one", POINTS, 1, "cos_sin"),
    _random("refused/axes", "refuse axes", {"layout": "sin_cos"}, {"x": np.asarray(THREE), "matrix": reals("refused", 4, 3)},
            "the matrix is transposed", kind="reject"),
    _random("refused/vector", "refuse", {"layout": "sin_cos"}, {"x": np.asarray(POINTS), "matrix": reals("refused", 2)},
            "a matrix has two axes", kind="reject"),
    _drawn("refused/layout", "refuse layout", POINTS, 4, "interleaved", kind="reject"),
    _drawn("gradient/points", "gradient unit", POINTS, 3, kind="vjp", cotangents={"out": reals("random points", 3, 6) / 2}),
    _drawn("gradient/flipped", "gradient layout", THREE, 2, "cos_sin", kind="vjp",
           cotangents={"out": reals("random flipped", 2, 4) / 2}),
)  # fmt: skip

CASES: tuple[Case, ...] = (*FEATURES, *RANDOM)
