"""Random Fourier features: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.absolute import POINTS, THREE, first_row
from .tools import Case, Real, after, always, argument, cases_of, deviations_of, held, option, reals
from .tools.hints import BRANCH, COORDINATES, EACH_ROW, KEEP_FLOAT32, ORDER, TWO_PI

USUAL: dict[str, Any] = {"layout": "sin_cos"}
SIZES: dict[str, Any] = {"c": 2, "m": 5}
UNSTORED = ("value/usual-beyond-24-bits",)
KERNEL: tuple[dict[str, Any], ...] = ({"layout": "sin_cos"},)
KERNEL_SIZES: dict[str, Any] = {"c": 3, "m": 96}

_random = cases_of("random_fourier")


def _case(
    name: str, x: Any, m: int, layout: str = "sin_cos", comment: str = "", *, bits: int = 8, by: float = 1.0, **rest: Any
) -> Case:
    """Return a case with a matrix of m columns, whose numbers are multiplied by a power of two."""
    x = np.asarray(x)
    inputs = {"x": x, "matrix": reals(f"random fourier {name}", x.shape[-1], m, bits=bits) * by}
    return _random(name, {"layout": layout}, inputs, comment, **rest)


LEVELS = ((-4.625,), (0.6931471824645996,), (3.90625,))


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("sam/small", POINTS, 5, tier="smoke"),
        _case("sam/square", POINTS, 2, comment="the matrix is square"),
        _case("paper/square", THREE, 3, "cos_sin", "the matrix is square"),
        _case("paper/wide", reals("random", 4, 2, bits=24) / 4, 10, "cos_sin", "a scale of 16", by=8.0),
        _case("levels/score", LEVELS, 128, comment="logarithms of noise levels; scale 16", by=8.0),
        _case("levels/vector", (0.5,), 6, comment="one level"),
        _case("empty/points", np.zeros((0, 2)), 3),
        _case("empty/rows", np.zeros((2, 0, 3)), 4, "cos_sin"),
        _case("empty/columns", POINTS, 0),
        _case("empty/columns-flipped", THREE, 0, "cos_sin"),
        _case("forms/batch-one", (POINTS,), 5),
        _case("forms/one-column", POINTS, 1, "cos_sin"),
        _random("refused/axes", {"layout": "sin_cos"},
                {"x": np.asarray(THREE), "matrix": reals("refused", 4, 3)}, "the matrix is transposed", kind="reject"),
        _random("refused/vector", {"layout": "sin_cos"}, {"x": np.asarray(POINTS), "matrix": reals("refused", 2)},
                "a matrix has two axes", kind="reject"),
        _case("refused/layout", POINTS, 4, "interleaved", kind="reject"),
        _case("gradient/points", POINTS, 3, kind="vjp", cotangents={"out": reals("random points", 3, 6) / 2}),
        _case("gradient/flipped", THREE, 2, "cos_sin", kind="vjp", cotangents={"out": reals("random flipped", 2, 4) / 2}),
    )  # fmt: skip


def _halves_exchanged(out: Real, *args: Any, **options: Any) -> Real:
    half = out.shape[-1] // 2
    return np.concatenate([out[..., half:], out[..., :half]], axis=-1)


_deviation = deviations_of("random_fourier")

DEVIATIONS = (
    _deviation("random-fourier-exchanged", "sines and cosines are exchanged", after(_halves_exchanged), hint=ORDER),
    _deviation("random-fourier-sin-cos", "sines always come first", option(layout=always("sin_cos")), hint=BRANCH),
    _deviation("random-fourier-cos-sin", "cosines always come first", option(layout=always("cos_sin")), hint=BRANCH),
    _deviation("random-fourier-radians", "angles are not multiplied by 2 pi", argument(1, lambda b: b / (2 * np.pi)),
               hint=TWO_PI),
    _deviation("random-fourier-half-turns", "angles are multiplied by pi", argument(1, lambda b: b / 2), hint=TWO_PI),
    _deviation("random-fourier-coordinates-reversed", "coordinates are exchanged: (y, x) for (x, y)",
               argument(0, lambda x: x[..., ::-1]), hint="SAM's points are (x, y)."),
    _deviation("random-fourier-transposed", "a square matrix is transposed",
               argument(1, lambda b: b.T if b.shape[0] == b.shape[1] else b),
               hint="Points are multiplied from the left: x B, not x B^T."),
    _deviation("random-fourier-bfloat16", "the matrix is held in bfloat16", held("bfloat16", 1), hint=KEEP_FLOAT32),
    _deviation("random-fourier-points-bfloat16", "points are held in bfloat16", held("bfloat16", 0), hint=COORDINATES),
    _deviation("random-fourier-unit-square", "points are taken for u where they are 2u - 1", argument(0, lambda x: 2 * x - 1),
               hint="SAM's class takes points from 0 to 1, this operation from -1 to 1."),
    _deviation("random-fourier-first-row", "the first point is used for all", argument(0, first_row), hint=EACH_ROW),
)  # fmt: skip
