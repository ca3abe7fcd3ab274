"""Deviations of positions that a convolution finds."""

from typing import Any

import numpy as np

from .compose import Function, Real, Wrap, always, argument, deviations_of, narrowed, option


def _frames(change: Any) -> Wrap:
    """Return a wrap that convolves frames with others around them: `change` takes x and how many go before and after."""

    def wrap(function: Function) -> Function:
        def deviating(x: Any, weight: Any, bias: Any, /, *, groups: int) -> Any:
            before, after = weight.shape[-1] // 2, (weight.shape[-1] - 1) // 2
            frames = x.shape[-2]
            if not x.size:
                return function(x, weight, bias, groups=groups)
            return function(change(x, before, after), weight, bias, groups=groups)[..., before : before + frames, :]

        return deviating

    return wrap


def _padded(mode: str) -> Wrap:
    """Return a wrap that pads frames as NumPy does."""

    def change(x: Real, before: int, after: int) -> Real:
        return np.pad(x, [(0, 0)] * (x.ndim - 2) + [(before, after), (0, 0)], mode=mode)  # type: ignore[call-overload]

    return _frames(change)


def _later(function: Function) -> Function:
    """The first frame of an even window is dropped, not the last."""

    def deviating(x: Any, weight: Any, bias: Any, /, *, groups: int) -> Any:
        if weight.shape[-1] % 2:
            return function(x, weight, bias, groups=groups)
        nothing = np.zeros((*x.shape[:-2], 1, x.shape[-1]))
        return function(np.concatenate([x, nothing], axis=-2), weight, bias, groups=groups)[..., 1:, :]

    return deviating


def _dealt(function: Function) -> Function:
    """Channel o is in group o mod G."""

    def deviating(x: Any, weight: Any, bias: Any, /, *, groups: int) -> Any:
        order = np.arange(x.shape[-1]).reshape(-1, groups).T.reshape(-1)
        found = function(x[..., order], weight[order], bias[order], groups=groups)
        return found[..., np.argsort(order)]

    return deviating


def _bias_inside(function: Function) -> Function:
    def deviating(x: Any, weight: Any, bias: Any, /, *, groups: int) -> Any:
        inside = function(np.ones_like(x), np.ones_like(weight), 0 * bias, groups=groups) == weight.shape[1] * weight.shape[2]
        return function(x, weight, 0 * bias, groups=groups) + np.where(inside, bias, 0.0)

    return deviating


_conv = deviations_of("conv_positions")
CONV = (
    _conv("conv-one-frame-late", "with an even number of taps the first frame is dropped, not the last", _later,
          "Frame t sees K/2 frames back and K/2 - 1 ahead."),
    _conv("conv-flipped", "taps are in reverse order", argument(1, lambda w: w[..., ::-1]),
          "Libraries correlate: tap k stands at frame t + k - K // 2."),
    _conv("conv-causal", "every frame sees only those before it", lambda f: lambda x, w, b, /, *, groups: f(
        x, np.concatenate([w, np.zeros((*w.shape[:-1], w.shape[-1] - 1))], axis=-1), b, groups=groups)),
    _conv("conv-edge-repeated", "the first and last frames are repeated beyond the ends", _padded("edge")),
    _conv("conv-edge-wrapped", "frames beyond an end wrap around from the other end", _padded("wrap")),
    _conv("conv-groups-dealt", "channels go to groups round-robin, not in blocks", _dealt,
          hint="A group is neighbouring channels: compare the reshape, (groups, channels)."),
    _conv("conv-without-bias", "the bias is left out", argument(2, lambda b: 0 * b)),
    _conv("conv-bias-inside", "the bias is added only where the whole window lies inside", _bias_inside),
    _conv("conv-channels-transposed", "input and output channels of a group are exchanged", lambda f: lambda x, w, b, /, *,
        groups: f(x, np.swapaxes(w.reshape(groups, w.shape[1], w.shape[1], -1), 1, 2).reshape(w.shape), b, groups=groups),
        hint="Weights are (output, input of a group, tap)."),
    _conv("conv-bfloat16", "the weights are held in bfloat16", argument(1, narrowed("bfloat16"))),
)  # fmt: skip


def _around(mode: str) -> Wrap:
    """Return a wrap in which the image goes on beyond its edges, as NumPy pads."""

    def wrap(function: Function) -> Function:
        def deviating(x: Any, weight: Any, bias: Any, /, *, residual: bool) -> Any:
            n = weight.shape[-1] // 2
            if not x.size or not n:
                return function(x, weight, bias, residual=residual)
            padded = np.pad(x, [(0, 0)] * (x.ndim - 3) + [(n, n), (n, n), (0, 0)], mode=mode)  # type: ignore[call-overload]
            return function(padded, weight, bias, residual=residual)[..., n:-n, n:-n, :]

        return deviating

    return wrap


def _swapped(function: Function) -> Function:
    def deviating(x: Any, weight: Any, bias: Any, /, *, residual: bool) -> Any:
        rows, columns = x.shape[-3:-1]
        other = x.reshape(*x.shape[:-3], columns, rows, x.shape[-1])
        return function(other, weight, bias, residual=residual).reshape(x.shape)

    return deviating


_peg = deviations_of("peg")
PEG = (
    _peg("peg-flipped", "the kernel is flipped in both axes", argument(1, lambda w: w[..., ::-1, ::-1]),
         "Libraries correlate: tap (0, 0) is the upper left neighbour."),
    _peg("peg-transposed", "rows and columns of the kernel are exchanged", argument(1, lambda w: np.swapaxes(w, -1, -2))),
    _peg("peg-sides-exchanged", "patches are laid out with height and width exchanged", _swapped),
    _peg("peg-edge-repeated", "the image's edge is repeated beyond it", _around("edge"),
         "Zeros around the image tell its edges."),
    _peg("peg-edge-wrapped", "patches beyond an edge wrap around from the other edge", _around("wrap"),
         hint="Pad zeros around the image, not the other edge."),
    _peg("peg-always-added", "x is always added", option(residual=always(True))),
    _peg("peg-never-added", "x is never added", option(residual=always(False))),
    _peg("peg-without-bias", "the bias is left out", argument(2, lambda b: 0 * b)),
    _peg("peg-bfloat16", "the weights are held in bfloat16", argument(1, narrowed("bfloat16"))),
)  # fmt: skip


def _normed(change: Any) -> Wrap:
    """Return a wrap that divides by another norm: `change` takes directions and the axis."""

    def wrap(function: Function) -> Function:
        def deviating(v: Any, g: Any, /, *, axis: int) -> Any:
            norm = change(v, axis)
            return v * (g / np.where(norm == 0, 1.0, norm))

        return deviating

    return wrap


def _others(axis: int) -> tuple[int, ...]:
    return tuple(k for k in range(3) if k != axis)


_norm = deviations_of("weight_norm")
NORM = (
    _norm("weight-norm-first-axis", "the norm is always taken for each output channel",
          _normed(lambda v, axis: np.sqrt((v * v).sum(axis=(1, 2), keepdims=True))), "wav2vec 2.0 has axis 2."),
    _norm("weight-norm-last-axis", "the norm is always taken for each tap",
          _normed(lambda v, axis: np.sqrt((v * v).sum(axis=(0, 1), keepdims=True)))),
    _norm("weight-norm-of-all", "the norm is taken over all weights", _normed(lambda v, axis: np.sqrt((v * v).sum()))),
    _norm("weight-norm-squared", "directions are divided by the square of their length",
          _normed(lambda v, axis: (v * v).sum(axis=_others(axis), keepdims=True))),
    _norm("weight-norm-absolute", "the norm is the sum of absolute values",
          _normed(lambda v, axis: np.abs(v).sum(axis=_others(axis), keepdims=True))),
    _norm("weight-norm-undivided", "directions are not divided by their length", _normed(lambda v, axis: np.ones(()))),
    _norm("weight-norm-no-length", "lengths are left out", argument(1, np.ones_like), hint="Multiply by the lengths g."),
    _norm("weight-norm-zero-nan", "a direction of zeros gives NaN", lambda f: lambda v, g, /, *, axis: np.where(
        (v * v).sum(axis=_others(axis), keepdims=True) == 0, np.nan, f(v, g, axis=axis)),
        "A norm of 0 must give 0: replace it before dividing.", "PyTorch's weight_norm"),
)  # fmt: skip

DEVIATIONS = (*CONV, *PEG, *NORM)
