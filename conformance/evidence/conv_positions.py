"""Convolutional position embedding: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, Wrap, argument, around, around_with, cases_of, deviations_of, held, reals
from .tools.hints import BIAS_ADDED, KEEP_FLOAT32

USUAL: dict[str, Any] = {"groups": 2}
KERNEL: tuple[dict[str, Any], ...] = ({"groups": 16},)
KERNEL_SIZES: dict[str, Any] = {"d": 96, "k": 20}

_conv = cases_of("conv_positions")


def _case(name: str, x: tuple[int, ...], taps: int, groups: int, comment: str = "", *, bits: int = 8, **rest: Any) -> Case:
    """Return a case of frames of a shape; weights become smaller as there are more of them."""
    width = abs(x[-1])
    inputs = {
        "x": reals(f"conv {name} x", *x, bits=bits),
        "weight": reals(f"conv {name} weight", width, width // groups, taps, bits=bits) / (4 if taps < 9 else 16),
        "bias": reals(f"conv {name} bias", width, bits=bits) / 2,
    }
    return _conv(name, {"groups": groups}, inputs, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("even/small", (5, 6), 4, 2, tier="smoke"),
        _case("even/two-taps", (7, 3), 2, 1, "this frame and the one before"),
        _case("even/depthwise", (6, 5), 4, 5, "a group for every channel"),
        _case("even/wav2vec2-long", (131, 2), 128, 1, "longer than the window"),
        _case("odd/one-tap", (4, 6), 1, 2, "every frame by itself"),
        _case("odd/data2vec", (23, 6), 19, 3, "19 taps; fewer channels"),
        _case("odd/one-channel", (8, 1), 3, 1),
        _case("forms/batch-one", (1, 5, 4), 4, 2),
        _case("forms/length-one-odd", (1, 4), 5, 2, "one frame: the tap in the middle and the bias"),
        _conv("refused/groups", {"groups": 4},
              {"x": reals("conv groups", 5, 6), "weight": reals("conv w", 6, 1, 3), "bias": reals("conv b", 6)},
              "4 groups do not divide 6 channels", kind="reject"),
        _conv("refused/weight", {"groups": 2},
              {"x": reals("conv weight", 5, 6), "weight": reals("conv w2", 6, 6, 3), "bias": reals("conv b2", 6)},
              "a group has 3 channels", kind="reject"),
        _conv("refused/bias", {"groups": 2},
              {"x": reals("conv bias", 5, 6), "weight": reals("conv w3", 6, 3, 3), "bias": reals("conv b3", 3)},
              "a bias for every channel", kind="reject"),
        _conv("refused/vector", {"groups": 1},
              {"x": reals("conv vector", 6), "weight": reals("conv w4", 6, 6, 3), "bias": reals("conv b4", 6)},
              "frames and channels are two axes", kind="reject"),
        _case("gradient/even", (3, 2), 4, 1, kind="vjp", cotangents={"out": reals("conv even", 3, 2) / 2}),
        _case("gradient/odd", (2, 2, 2), 3, 2, bits=24, kind="vjp",
              cotangents={"out": reals("conv odd", 2, 2, 2, bits=24) / 2}),
    )  # fmt: skip


PADDING = "Pad K // 2 frames of zeros on both sides."


@around_with
def _frames(change: Any, function: Function, x: Any, weight: Any, bias: Any, /, *, groups: int) -> Any:
    """Frames are convolved with others around them: `change` takes x and how many go before and after."""
    before, after = weight.shape[-1] // 2, (weight.shape[-1] - 1) // 2
    frames = x.shape[-2]
    if not x.size:
        return function(x, weight, bias, groups=groups)
    return function(change(x, before, after), weight, bias, groups=groups)[..., before : before + frames, :]


def _padded(mode: str) -> Wrap:
    """Return a wrap that pads frames as NumPy does."""

    def change(x: Real, before: int, after: int) -> Real:
        return np.pad(x, [(0, 0)] * (x.ndim - 2) + [(before, after), (0, 0)], mode=mode)  # type: ignore[call-overload]

    return _frames(change)


@around
def _later(function: Function, x: Any, weight: Any, bias: Any, /, *, groups: int) -> Any:
    """The first frame of an even window is dropped, not the last."""
    if weight.shape[-1] % 2:
        return function(x, weight, bias, groups=groups)
    nothing = np.zeros((*x.shape[:-2], 1, x.shape[-1]))
    return function(np.concatenate([x, nothing], axis=-2), weight, bias, groups=groups)[..., 1:, :]


@around
def _dealt(function: Function, x: Any, weight: Any, bias: Any, /, *, groups: int) -> Any:
    """Channel o is in group o mod G."""
    order = np.arange(x.shape[-1]).reshape(-1, groups).T.reshape(-1)
    result = function(x[..., order], weight[order], bias[order], groups=groups)
    return result[..., np.argsort(order)]


@around
def _bias_inside(function: Function, x: Any, weight: Any, bias: Any, /, *, groups: int) -> Any:
    inside = function(np.ones_like(x), np.ones_like(weight), 0 * bias, groups=groups) == weight.shape[1] * weight.shape[2]
    return function(x, weight, 0 * bias, groups=groups) + np.where(inside, bias, 0.0)


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
    _deviation("conv-bfloat16", "the weights are held in bfloat16", held("bfloat16", 1), hint=KEEP_FLOAT32),
)  # fmt: skip
