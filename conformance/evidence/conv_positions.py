"""Convolutional position embedding: cases and known mistakes."""

from typing import Any

import numpy as np

from ..model import Case, Flag
from .tools.case import cases_of
from .tools.deviation import Function, Real, Wrap, argument, deviations_of, narrowed
from .tools.hints import BIAS_ADDED, KEEP_FLOAT32
from .tools.numbers import reals

FLAGS = {
    "conv-centre": Flag("the window of an even number of taps one frame off, or the first frame dropped for the last"),
    "conv-taps": Flag("taps in reverse order: a convolution where libraries correlate"),
    "conv-groups": Flag("channels of other groups taken in, or channels given to groups round-robin"),
    "conv-edge": Flag("frames beyond the ends repeated, reflected or wrapped, not 0"),
    "conv-bias": Flag("the bias left out, or a frame's bias only where all taps lie inside"),
    "conv-downcast": Flag("frames or weights of 24-bit numbers narrowed on the way"),
    "conv-true-size": Flag("a model's number of taps not reproduced"),
    "conv-rows": Flag("frames of one row taken into another row's window"),
    "conv-empty": Flag("no frames, or fewer than taps: a crash or a wrong shape"),
    "conv-refuse": Flag("groups, weights or frames that do not fit accepted"),
    "conv-gradient": Flag("a gradient with the taps in the order of the forward pass, or across the ends"),
}

USUAL: dict[str, Any] = {"groups": 2}
KERNEL: tuple[dict[str, Any], ...] = ({"groups": 16},)
KERNEL_SIZES: dict[str, Any] = {"d": 96, "k": 20}

_conv = cases_of("conv_positions", "conv-")
_conv_form = cases_of("conv_positions")


def _case(
    name: str, flags: str, x: tuple[int, ...], taps: int, groups: int, comment: str = "", *, bits: int = 8, **rest: Any
) -> Case:
    """Return a case of frames of a shape; weights become smaller as there are more of them."""
    width = abs(x[-1])
    inputs = {
        "x": reals(f"conv {name} x", *x, bits=bits),
        "weight": reals(f"conv {name} weight", width, width // groups, taps, bits=bits) / (4 if taps < 9 else 16),
        "bias": reals(f"conv {name} bias", width, bits=bits) / 2,
    }
    make = _conv_form if name.startswith("forms/") else _conv
    return make(name, flags, {"groups": groups}, inputs, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("even/small", "centre taps groups edge", (5, 6), 4, 2, tier="smoke"),
        _case("even/two-taps", "centre taps", (7, 3), 2, 1, "this frame and the one before"),
        _case("even/rows", "rows edge centre", (2, 3, 4), 6, 2, "(B, T, d), shorter than the window"),
        _case("even/24-bits", "downcast bias groups", (5, 6), 4, 3, bits=24),
        _case("even/depthwise", "groups taps bias", (6, 5), 4, 5, "a group for every channel"),
        _case("even/wav2vec2", "true-size centre groups", (19, 6), 128, 2, "128 taps, so 64 frames back; fewer channels"),
        _case("even/wav2vec2-long", "true-size taps edge", (131, 2), 128, 1, "longer than the window"),
        _case("odd/small", "centre taps groups edge", (5, 6), 3, 2),
        _case("odd/one-tap", "bias groups", (4, 6), 1, 2, "every frame by itself"),
        _case("odd/rows", "rows bias", (3, 4, 6), 5, 3, "(B, T, d)"),
        _case("odd/24-bits", "downcast edge taps", (6, 4), 5, 1, bits=24),
        _case("odd/data2vec", "true-size groups centre", (23, 6), 19, 3, "19 taps; fewer channels"),
        _case("odd/one-channel", "edge taps", (8, 1), 3, 1),
        _case("empty/no-frames", "empty", (0, 6), 4, 2),
        _case("empty/no-rows", "empty", (0, 3, 4), 3, 2),
        _case("forms/strided", "non-contiguous", (3, 4, 6), 3, 2),
        _case("forms/strided-even", "non-contiguous", (2, 5, 4), 4, 1),
        _case("forms/expanded", "broadcast-view", (-3, 4, 6), 4, 2),
        _case("forms/expanded-odd", "broadcast-view", (-2, 5, 2), 3, 1),
        _case("forms/batch-one", "batch-one", (1, 5, 4), 4, 2),
        _case("forms/length-one", "length-one batch-one", (1, 1, 6), 4, 3),
        _case("forms/length-one-odd", "length-one", (1, 4), 5, 2, "one frame: the tap in the middle and the bias"),
        _conv("refused/groups", "refuse groups", {"groups": 4},
              {"x": reals("conv groups", 5, 6), "weight": reals("conv w", 6, 1, 3), "bias": reals("conv b", 6)},
              "4 groups do not divide 6 channels", kind="reject"),
        _conv("refused/weight", "refuse", {"groups": 2},
              {"x": reals("conv weight", 5, 6), "weight": reals("conv w2", 6, 6, 3), "bias": reals("conv b2", 6)},
              "a group has 3 channels", kind="reject"),
        _conv("refused/bias", "refuse bias", {"groups": 2},
              {"x": reals("conv bias", 5, 6), "weight": reals("conv w3", 6, 3, 3), "bias": reals("conv b3", 3)},
              "a bias for every channel", kind="reject"),
        _conv("refused/vector", "refuse", {"groups": 1},
              {"x": reals("conv vector", 6), "weight": reals("conv w4", 6, 6, 3), "bias": reals("conv b4", 6)},
              "frames and channels are two axes", kind="reject"),
        _case("gradient/even", "gradient centre", (3, 2), 4, 1, kind="vjp", cotangents={"out": reals("conv even", 3, 2) / 2}),
        _case("gradient/odd", "gradient groups downcast", (2, 2, 2), 3, 2, bits=24, kind="vjp",
              cotangents={"out": reals("conv odd", 2, 2, 2, bits=24) / 2}),
    )  # fmt: skip


PADDING = "Pad K // 2 frames of zeros on both sides."


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


_deviation = deviations_of("conv_positions")

DEVIATIONS = (
    _deviation("conv-one-frame-late", "with an even number of taps the first frame is dropped, not the last", _later,
               hint="Frame t sees K/2 frames back and K/2 - 1 ahead."),
    _deviation("conv-flipped", "taps are in reverse order", argument(1, lambda w: w[..., ::-1]),
               hint="Libraries correlate: tap k stands at frame t + k - K // 2."),
    _deviation("conv-causal", "every frame sees only those before it",
               lambda f: lambda x, w, b, /, *, groups: f(x,
               np.concatenate([w, np.zeros((*w.shape[:-1], w.shape[-1] - 1))], axis=-1), b, groups=groups), hint=PADDING),
    _deviation("conv-edge-repeated", "the first and last frames are repeated beyond the ends", _padded("edge"), hint=PADDING),
    _deviation("conv-edge-wrapped", "frames beyond an end wrap around from the other end", _padded("wrap"), hint=PADDING),
    _deviation("conv-groups-dealt", "channels go to groups round-robin, not in blocks", _dealt,
               hint="A group is neighbouring channels: compare the reshape, (groups, channels)."),
    _deviation("conv-without-bias", "the bias is left out", argument(2, lambda b: 0 * b), hint=BIAS_ADDED),
    _deviation("conv-bias-inside", "the bias is added only where the whole window lies inside", _bias_inside, hint=BIAS_ADDED),
    _deviation("conv-channels-transposed", "input and output channels of a group are exchanged",
               lambda f: lambda x, w, b, /, *, groups: f(x,
               np.swapaxes(w.reshape(groups, w.shape[1], w.shape[1], -1), 1, 2).reshape(w.shape), b, groups=groups),
               hint="Weights are (output, input of a group, tap)."),
    _deviation("conv-bfloat16", "the weights are held in bfloat16", argument(1, narrowed("bfloat16")), hint=KEEP_FLOAT32),
)  # fmt: skip
