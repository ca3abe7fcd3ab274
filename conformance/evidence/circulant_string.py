"""Circulant-STRING: cases and known mistakes."""

from functools import partial
from typing import Any

import numpy as np

from .shared.axial import BETWEEN, FAR, FRAMES, PATCHES
from .shared.lie import IMAGES, learned, lie_case, matrix_forms
from .shared.rotary import TRIPLES
from .tools import Case, Real, Step, argument, deviations_of, floats, gradient, reals, sequence

SIZES: dict[str, Any] = {"E": 1}
AXES = (1, 1)
KERNEL: tuple[dict[str, Any], ...] = ({},)


_case = partial(lie_case, "circulant_string", "coefficients")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", (5, 5), PATCHES, (2, 1, 5), tier="smoke"),
        _case("plain/even", (3, 8), BETWEEN, (2, 2, 4), inverse=False),
        _case("plain/partial", (3, 10), FRAMES, (3, 1, 7), bits=24),
        _case("plain/inverse", (3, 6), BETWEEN, (2, 1, 6), inverse=True),
        _case("plain/inverse-partial", (3, 7), FRAMES[:2], (2, 2, 3), bits=24, inverse=True),
        _case("plain/far", (4, 5), FAR, (2, 1, 5), bits=24, over=64),
        _case("heads/last", (3, 2, 4), np.asarray(BETWEEN)[:, :, None], (2, 1, 2, 1, 4), "tokens before heads"),
        _case("models/head-64", (2, 64), ((0, 5), (0, 11)), (2, 4, 16), "a class token and a patch; four blocks", bits=20),
        _case("shapes/vector", (6,), (4, 9), (2, 2, 3)),
        _case("refused/lanes", (5, 8), PATCHES, (2, 3, 3), "nine lanes of eight", kind="reject"),
        _case("refused/pairs", (5, 8), PATCHES, (2, 2, 2), "two lanes, which never turn", kind="reject"),
        _case("refused/heads", (3, 5, 8), PATCHES, (2, 5, 2, 3), "an axis for heads or for tokens", kind="reject"),
        sequence("circulant_string/sequence/sizes", IMAGES,
                 tuple(Step({}, {"x": x, "positions": p, "coefficients": learned("sizes-c", 2, 2, 3)})
                 for x in (floats(4, 6, seed=5),)
                 for x, p in ((x, ((0, 0, 7, 7), (0, 30, 0, 30))), (x[:2], ((0, 1), (1, 0))), (x[3:], ((7,), (30,)))))),
        *matrix_forms("circulant_string", "coefficients", (1, 3)),
        gradient("circulant_string", "shared",
                 {"x": reals("circulant-x", 3, 3), "positions": TRIPLES[:2],
                 "coefficients": reals("circulant-s", 2, 1, 3) / 8}, {"out": (3, 3)}),
        gradient("circulant_string", "inverse",
                 {"x": reals("circulant-i", 3, 5), "positions": TRIPLES[:2],
                 "coefficients": reals("circulant-h", 2, 1, 4) / 8}, {"out": (3, 5)}, inverse=True),
    )  # fmt: skip


def _reversed(c: Real) -> Real:
    """Return coefficients of the transposed circulant matrices."""
    return c[..., -np.arange(c.shape[-1])]


_deviation = deviations_of("circulant_string")

DEVIATIONS = (
    _deviation("circulant-row", "coefficients are the first row, where they are the first column", argument(2, _reversed),
               hint="One gives the inverse of the other."),
)  # fmt: skip
