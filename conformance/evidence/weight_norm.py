"""Weight normalization: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, argument, around_with, cases_of, deviations_of, reals

USUAL: dict[str, Any] = {"axis": 2}
SIZES: dict[str, Any] = {"o": 4, "c": 2}
KERNEL: tuple[dict[str, Any], ...] = ({"axis": 2}, {"axis": 0})
KERNEL_SIZES: dict[str, Any] = {"o": 96, "c": 24, "k": 130}

_norm = cases_of("weight_norm")


def _case(
    name: str, v: tuple[int, int, int], axis: int, comment: str = "", *, bits: int = 8, zero: int | None = None, **rest: Any
) -> Case:
    """Return a case of directions of a shape, those of index `zero` along the axis being 0."""
    lengths = tuple(n if k == axis else 1 for k, n in enumerate(v))
    directions = reals(f"norm {name} v", *v, bits=bits)
    if zero is not None:
        directions.swapaxes(0, axis)[zero] = 0.0
    return _norm(name, {"axis": axis}, {"v": directions, "g": reals(f"norm {name} g", *lengths, bits=bits)}, comment, **rest)


def _norm_refused(name: str, v: tuple[int, ...], g: tuple[int, ...], axis: int, comment: str) -> Case:
    inputs = {"v": reals(f"norm {name} v", *v), "g": reals(f"norm {name} g", *g)}
    return _norm(f"refused/{name}", {"axis": axis}, inputs, comment, kind="reject")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("taps/small", (4, 2, 3), 2, tier="smoke"),
        _case("taps/wav2vec2", (4, 3, 128), 2, "128 taps; fewer channels"),
        _case("taps/data2vec", (4, 5, 19), 2, "19 taps"),
        _case("taps/zero", (4, 2, 3), 2, "all weights of one tap", zero=1),
        _case("outputs/24-bits", (5, 2, 4), 0, bits=24),
        _case("outputs/zero", (3, 2, 5), 0, "all weights of one channel", zero=2),
        _case("inputs/24-bits", (2, 6, 3), 1, bits=24),
        _case("empty/taps", (4, 2, 0), 2),
        _case("empty/outputs", (0, 2, 3), 2),
        _case("forms/strided", (4, 3, 5), 2, form="non-contiguous"),
        _case("forms/strided-outputs", (5, 2, 6), 0, form="non-contiguous"),
        _case("forms/length-one", (1, 1, 1), 2, "one weight: its sign and the length"),
        _norm_refused("lengths", (4, 2, 3), (4, 1, 1), 2, "a length for each channel, where each tap has one"),
        _norm_refused("vector", (4, 2, 3), (3,), 2, "a length has all three axes"),
        _norm_refused("axis", (4, 2, 3), (4, 2, 3), 3, "there are three axes"),
        _norm_refused("four-axes", (4, 1, 3, 3), (1, 1, 1, 3), 2, "weights of a convolution over frames have three axes"),
        _case("gradient/taps", (2, 1, 3), 2, kind="vjp", cotangents={"out": reals("norm taps", 2, 1, 3) / 2}),
        _case("gradient/outputs", (2, 2, 2), 0, bits=24, kind="vjp",
              cotangents={"out": reals("norm outputs", 2, 2, 2, bits=24) / 2}),
    )  # fmt: skip


AXES_OF_NORM = "The norm is over all axes but `axis`."
ROOT_OF_SQUARES = "The norm is the root of the sum of squares."


@around_with
def _normed(change: Any, function: Function, v: Any, g: Any, /, *, axis: int) -> Any:
    """Directions are divided by another norm: `change` takes directions and the axis."""
    norm = change(v, axis)
    return v * (g / np.where(norm == 0, 1.0, norm))


def _others(axis: int) -> tuple[int, ...]:
    return tuple(k for k in range(3) if k != axis)


_deviation = deviations_of("weight_norm")

DEVIATIONS = (
    _deviation("weight-norm-first-axis", "the norm is always taken for each output channel",
               _normed(lambda v, axis: np.sqrt((v * v).sum(axis=(1, 2), keepdims=True))), hint="wav2vec 2.0 has axis 2."),
    _deviation("weight-norm-last-axis", "the norm is always taken for each tap",
               _normed(lambda v, axis: np.sqrt((v * v).sum(axis=(0, 1), keepdims=True))), hint=AXES_OF_NORM),
    _deviation("weight-norm-of-all", "the norm is taken over all weights", _normed(lambda v, axis: np.sqrt((v * v).sum())),
               hint=AXES_OF_NORM),
    _deviation("weight-norm-squared", "directions are divided by the square of their length",
               _normed(lambda v, axis: (v * v).sum(axis=_others(axis), keepdims=True)), hint=ROOT_OF_SQUARES),
    _deviation("weight-norm-absolute", "the norm is the sum of absolute values",
               _normed(lambda v, axis: np.abs(v).sum(axis=_others(axis), keepdims=True)), hint=ROOT_OF_SQUARES),
    _deviation("weight-norm-undivided", "directions are not divided by their length", _normed(lambda v, axis: np.ones(())),
               hint=ROOT_OF_SQUARES),
    _deviation("weight-norm-no-length", "lengths are left out", argument(1, np.ones_like), hint="Multiply by the lengths g."),
    _deviation("weight-norm-zero-nan", "a direction of zeros gives NaN",
               lambda f: lambda v, g, /, *, axis: np.where((v * v).sum(axis=_others(axis), keepdims=True) == 0, np.nan,
               f(v, g, axis=axis)), hint="A norm of 0 must give 0: replace it before dividing.",
               seen_in="PyTorch's weight_norm"),
)  # fmt: skip
