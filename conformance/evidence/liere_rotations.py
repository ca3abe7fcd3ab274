"""Rotation matrices of LieRE: cases and known mistakes."""

from typing import Any

import numpy as np

from posref.core.matrices import skew_exponential

from .shared.axial import BETWEEN, FAR, FRAMES, PATCHES
from .shared.lie import exponent, learned, matrix_forms, other_exponential, transposed
from .shared.rotary import TRIPLES
from .tools import Case, Deviation, Real, after, argument, deviations_of, gradient, reals
from .tools.hints import EXPONENTIAL

SIZES: dict[str, Any] = {"n": 2}
AXES = (1, 3)
KERNEL: tuple[dict[str, Any], ...] = ({},)


def _case(
    name: str, positions: Any, shape: tuple[int, ...], comment: str = "", *, bits: int = 8, over: float = 8,
    kind: str = "value", tier: str = "core",
) -> Case:  # fmt: skip
    inputs = {"positions": positions, "generators": learned(name, *shape, bits=bits, over=over)}
    return Case(f"liere_rotations/{name}", {}, inputs, comment, kind, tier)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", PATCHES, (2, 1, 3, 3), tier="smoke"),
        _case("plain/pairs", FRAMES[:2], (2, 3, 2, 2), "as mixed_rope", bits=24),
        _case("plain/three", FRAMES, (3, 1, 4, 4), "time, height and width", over=16),
        _case("plain/far", FAR, (2, 1, 3, 3), over=1024),
        _case("plain/24-bits-five", BETWEEN, (2, 1, 5, 5), bits=24),
        _case("plain/one-axis", ((0, 3, 9, 300),), (1, 1, 3, 3), "rotations of one token after the other", over=64),
        _case("heads/last", tuple(np.asarray(BETWEEN)[..., None]), (2, 2, 1, 3, 3), "tokens before heads"),
        _case("refused/axes", PATCHES, (3, 1, 2, 2), "generators of three axes for two", kind="reject"),
        _case("refused/rows", PATCHES, (2, 3, 1, 2, 2), "three heads against five tokens", kind="reject"),
        _case("refused/square", PATCHES, (2, 1, 2, 3), "no square matrices", kind="reject"),
        *matrix_forms("liere_rotations", "generators", (1, 2, 2), x=False),
        gradient("liere_rotations", "shared",
                 {"positions": TRIPLES[:2], "generators": reals("liere-shared", 2, 1, 3, 3) / 8}, {"out": (3, 1, 3, 3)}),
        gradient("liere_rotations", "heads",
                 {"positions": TRIPLES[:2], "generators": reals("liere-heads", 2, 2, 1, 1, 2, 2) / 8},
                 {"out": (2, 3, 1, 2, 2)}),
    )  # fmt: skip


def _cayley_of(a: Real) -> Real:
    """Return the Cayley transform that is the exponential to second order."""
    return np.linalg.solve(np.eye(a.shape[-1]) - a / 2, np.eye(a.shape[-1]) + a / 2)


def _by_axis(out: Real, p: Real, g: Real, /, **rest: Any) -> Real:
    """Return the product of the exponentials of every axis, the first one leftmost."""
    rotation = skew_exponential(exponent(p[:1], g[:1]))
    for a in range(1, len(p)):
        rotation = rotation @ skew_exponential(exponent(p[a : a + 1], g[a : a + 1]))
    return rotation


_deviation = deviations_of("liere_rotations")

DEVIATIONS = (
    _deviation("lie-transposed", "the rotations are transposed: x R in place of R x, or signs exchanged",
               after(lambda out, *args, **rest: transposed(out)),
               hint="Compute R x for a column of channels, with the upper triangle as it is."),
    _deviation("lie-full", "the transpose of the whole matrix is subtracted, not of its upper triangle",
               argument(1, lambda g: g - transposed(g)), hint="triu(diagonal=1) comes first."),
    _deviation("lie-lower", "the parameter fills the lower triangle, its negative the upper one",
               argument(1, lambda g: -transposed(g)), hint="The parameter stands above the diagonal, its negative below."),
    _deviation("lie-by-axis", "axes rotate one after another, in place of the exponential of the sum", after(_by_axis),
               hint="The two agree only where generators commute."),
    Deviation("lie-cayley", "the exponential is replaced by a Cayley transform, equal to second order",
              other_exponential(_cayley_of), hint=EXPONENTIAL),
)  # fmt: skip
