"""Positional encoding generator (PEG): cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, always, argument, around, around_with, cases_of, deviations_of, held, option, reals
from .tools.hints import BIAS_ADDED, BRANCH, HEIGHT_WIDTH, KEEP_FLOAT32

USUAL: dict[str, Any] = {"residual": True}
SIZES: dict[str, Any] = {"I": 3, "J": 5}
KERNEL: tuple[dict[str, Any], ...] = ({"residual": True},)
KERNEL_SIZES: dict[str, Any] = {"d": 96, "k": 3}

_peg = cases_of("peg")


def _case(
    name: str, x: tuple[int, ...], size: int = 3, comment: str = "", *, residual: bool, bits: int = 8, **rest: Any
) -> Case:
    """Return a case of patches of a shape."""
    width = abs(x[-1])
    inputs = {
        "x": reals(f"peg {name} x", *x, bits=bits),
        "weight": reals(f"peg {name} weight", width, 1, size, size, bits=bits) / 4,
        "bias": reals(f"peg {name} bias", width, bits=bits) / 2,
    }
    return _peg(name, {"residual": residual}, inputs, comment, **rest)


def _peg_refused(name: str, weight: tuple[int, ...], bias: int, comment: str, x: tuple[int, ...] = (3, 4, 6)) -> Case:
    shapes = {"x": x, "weight": weight, "bias": (bias,)}
    inputs = {argument: reals(f"peg {name} {argument}", *shape) for argument, shape in shapes.items()}
    return _peg(f"refused/{name}", {"residual": True}, inputs, comment, kind="reject")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("residual/small", (3, 4, 2), residual=True, tier="smoke"),
        _case("residual/five-taps", (4, 7, 2), 5, residual=True),
        _case("residual/one-tap", (3, 4, 6), 1, "every patch by itself", residual=True),
        _case("residual/one-column", (5, 1, 3), residual=True),
        _case("residual/cpvt", (14, 14, 3), comment="14 by 14 patches; fewer channels", residual=True),
        _case("alone/batch", (2, 3, 2, 4), residual=False),
        _case("alone/segformer", (16, 12, 2), comment="16 by 12 patches; fewer channels", residual=False),
        _case("empty/no-rows", (0, 4, 3), residual=True),
        _case("empty/no-columns", (3, 0, 5), residual=False),
        _case("empty/no-images", (0, 2, 3, 4), residual=False),
        _case("forms/batch-one", (1, 3, 5, 2), residual=True),
        _case("forms/length-one-alone", (1, 1, 4), residual=False),
        _peg_refused("even", (6, 1, 4, 4), 6, "an even kernel has no middle"),
        _peg_refused("channels", (6, 6, 3, 3), 6, "channels do not mix"),
        _peg_refused("bias", (6, 1, 3, 3), 1, "a bias for every channel"),
        _peg_refused("tokens", (6, 1, 3, 3), 6, "a row of patches does not say its image's width", (12, 6)),
        _case("gradient/residual", (2, 3, 1), residual=True, kind="vjp",
              cotangents={"out": reals("peg residual", 2, 3, 1) / 2}),
        _case("gradient/alone", (2, 2, 2), residual=False, bits=24, kind="vjp",
              cotangents={"out": reals("peg alone", 2, 2, 2, bits=24) / 2}),
    )  # fmt: skip


@around_with
def _around(mode: str, function: Function, x: Any, weight: Any, bias: Any, /, *, residual: bool) -> Any:
    """The image goes on beyond its edges, as NumPy pads."""
    n = weight.shape[-1] // 2
    if not x.size or not n:
        return function(x, weight, bias, residual=residual)
    padded = np.pad(x, [(0, 0)] * (x.ndim - 3) + [(n, n), (n, n), (0, 0)], mode=mode)  # type: ignore[call-overload]
    return function(padded, weight, bias, residual=residual)[..., n:-n, n:-n, :]


@around
def _swapped(function: Function, x: Any, weight: Any, bias: Any, /, *, residual: bool) -> Any:
    rows, columns = x.shape[-3:-1]
    other = x.reshape(*x.shape[:-3], columns, rows, x.shape[-1])
    return function(other, weight, bias, residual=residual).reshape(x.shape)


_deviation = deviations_of("peg")

DEVIATIONS = (
    _deviation("peg-flipped", "the kernel is flipped in both axes", argument(1, lambda w: w[..., ::-1, ::-1]),
               hint="Libraries correlate: tap (0, 0) is the upper left neighbour."),
    _deviation("peg-transposed", "rows and columns of the kernel are exchanged", argument(1, lambda w: np.swapaxes(w, -1, -2)),
               hint=HEIGHT_WIDTH),
    _deviation("peg-sides-exchanged", "patches are laid out with height and width exchanged", _swapped, hint=HEIGHT_WIDTH),
    _deviation("peg-edge-repeated", "the image's edge is repeated beyond it", _around("edge"),
               hint="Zeros around the image tell its edges."),
    _deviation("peg-edge-wrapped", "patches beyond an edge wrap around from the other edge", _around("wrap"),
               hint="Pad zeros around the image, not the other edge."),
    _deviation("peg-always-added", "x is always added", option(residual=always(True)), hint=BRANCH),
    _deviation("peg-never-added", "x is never added", option(residual=always(False)), hint=BRANCH),
    _deviation("peg-without-bias", "the bias is left out", argument(2, lambda b: 0 * b), hint=BIAS_ADDED),
    _deviation("peg-bfloat16", "the weights are held in bfloat16", held("bfloat16", 1), hint=KEEP_FLOAT32),
)  # fmt: skip
