"""RMS normalization: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .tools import Case, cases_of, gradient, reals
from .tools.deviation import Deviation, Function, Real, Wrap, argument, around, deviations_of, narrowed, option
from .tools.hints import DEFAULT, IGNORED, ROUND_ONCE

OP = "rms_norm"

USUAL: dict[str, Any] = {"eps": 2.0**-10, "weight_offset": 0}
KERNEL: tuple[dict[str, Any], ...] = ({"eps": 1e-6, "weight_offset": 0}, {"eps": 1e-6, "weight_offset": 1})
KERNEL_SIZES: dict[str, Any] = {"D": 200}
OTHER_VALUES: dict[str, Any] = {"eps": 0.5}

_norm = cases_of(OP)


def _case(
    name: str, shape: tuple[int, ...], comment: str = "", *, eps: float = 1e-6, weight_offset: int = 0,
    size: Any = 1.0, bits: int = 8, weight: tuple[int, ...] | None = None, **rest: Any,
) -> Case:  # fmt: skip
    """Return a case of an x of `shape`, with numbers in (-4, 4) times `size`, and a weight for each of its channels."""
    inputs = {
        "x": reals(f"norm {name} x", *shape, bits=bits) * size,
        "weight": reals(f"norm {name} weight", *(shape[-1:] if weight is None else weight), bits=bits) / 2,
    }
    return _norm(name, {"eps": eps, "weight_offset": weight_offset}, inputs, comment, **rest)


def _gradient(name: str, shape: tuple[int, ...], *, size: float = 1.0, bits: int = 8, **params: Any) -> Case:
    inputs = {
        "x": reals(f"norm gradient {name} x", *shape, bits=bits) * size,
        "weight": reals(f"norm gradient {name} weight", abs(shape[-1]), bits=bits) / 2,
    }
    options = {"eps": 1e-6, "weight_offset": 0, **params}
    return gradient(OP, name, inputs, {"out": shape}, bits=bits, **options)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    small = 2.0**-7
    return (
        _case("weight/small", (3, 6), tier="smoke"),
        _case("weight/24-bits", (2, 3, 5, 12), bits=24),
        _case("weight/small-numbers", (4, 6), size=small, eps=1e-4),
        _case("weight/large-eps", (3, 5, 10), eps=0.125, bits=24),
        _case("weight/large-numbers", (3, 14), "the sum of their squares is above 65504", size=64.0),
        _case("weight/large-squares", (3, 14), "each square of many is above 65504", size=512.0),
        _case("weight/zero", (3, 6), "a row of zeros is 0", size=np.asarray([[1.0], [0.0], [0.5]]), eps=1e-5),
        _case("models/qwen3", (2, 3, 128), "a norm of each head"),
        _case("models/gemma-3", (3, 1, 256), "a norm of each head", weight_offset=1),
        _case("models/olmo-2", (1, 640), "all heads together, as in OLMo 2: 40 heads, here of 16 channels"),
        _case("models/llama-3", (1, 2048), "before a layer, as in Llama 3.2 1B", eps=1e-5),
        _case("forms/strided-offset", (4, 3, 10), weight_offset=1, form="non-contiguous"),
        _case("forms/expanded", (-3, 2, 8), form="broadcast-view"),
        _case("forms/batch-one", (1, 3, 6)),
        _case("forms/one-row", (2, 1, 6), weight_offset=1),
        _case("forms/one-channel", (3, 1), "the sign of x, nearly"),
        _case("refused/weight-width", (3, 6), "the weight of another width", weight=(3,), kind="reject"),
        _case("refused/weight-one", (3, 6), "one weight would broadcast", weight=(1,), kind="reject"),
        _case("refused/weight-of-heads", (2, 3, 6), "a weight for each channel of each head", weight=(3, 6), kind="reject"),
        _case("refused/eps", (3, 6), "0 gives NaN for a row of zeros", eps=0.0, kind="reject"),
        _case("refused/offset", (3, 6), "0 or 1", weight_offset=2, kind="reject"),
        _gradient("weight", (2, 4)),
        _gradient("offset", (3, 2, 3), weight_offset=1),
        _gradient("eps", (2, 3), size=small, eps=1e-4),
        _gradient("24-bits", (2, 3), bits=24),
        _gradient("odd", (2, 5)),
        _gradient("strided", (2, 3, 4), eps=1e-5, view="non-contiguous"),
        _gradient("expanded", (-2, 2, 3), view="broadcast-view"),
    )


AXIS = "The mean is over the channels of one row: the last axis."
MEAN = "Divide the sum of the squares by the number of channels that were added."
UNBIASED = "torch.var divides by D - 1 unless correction=0 is passed: the mean divides by D."
ROOT = "eps is added to the mean of the squares, under the root."
OFFSET = "Gemma's weights are stored less 1: look at what the model's own class does with its weight."
NO_MEAN = "RMS normalization does not subtract the mean: this is LayerNorm."
NO_VARIANCE = "torch.var subtracts a mean first. RMS normalization divides by the root of the mean of x squared."


def _normed(inverse: Callable[[Real, float], Real]) -> Wrap:
    """Return a wrap that multiplies x by something else: `inverse` takes x and eps."""

    def deviating(function: Function, x: Real, weight: Real, /, *, eps: float, weight_offset: int) -> Real:
        with np.errstate(divide="ignore", invalid="ignore"):
            return x * inverse(x, eps) * (weight + weight_offset)

    return around(deviating)


def _mean_of(squares: Real) -> Real:
    return squares.mean(axis=-1, keepdims=True) if squares.size else np.ones(())


def _over(axes: int) -> Callable[[Real, float], Real]:
    """Return the inverse root of the mean over the last axes together."""

    def inverse(x: Real, eps: float) -> Real:
        last = tuple(range(-min(axes, x.ndim), 0))
        return 1 / np.sqrt((x * x).mean(axis=last, keepdims=True) + eps) if x.size else np.ones(())

    return inverse


def _rows(x: Real, eps: float) -> Real:
    """Return the inverse root of the mean over the rows, for each channel."""
    return 1 / np.sqrt((x * x).mean(axis=-2, keepdims=True) + eps) if x.ndim > 1 and x.size else _over(1)(x, eps)


def _block(x: Real, eps: float) -> Real:
    """Return the inverse root of the sum over the channels, divided by the power of two that holds them."""
    width = 1 << (x.shape[-1] - 1).bit_length()
    return 1 / np.sqrt((x * x).sum(axis=-1, keepdims=True) / width + eps)


def _leading(x: Real, eps: float) -> Real:
    """Return the inverse root of the mean over the first half of the channels."""
    return 1 / np.sqrt(_mean_of(x[..., : max(x.shape[-1] // 2, 1)] ** 2) + eps)


def _whole_tiles(x: Real, eps: float) -> Real:
    """Return the inverse root of the sum over whole groups of four channels, divided by the number of all."""
    kept = x[..., : x.shape[-1] // 4 * 4]
    return 1 / np.sqrt((kept * kept).sum(axis=-1, keepdims=True) / x.shape[-1] + eps)


@around
def _layer_norm(function: Function, x: Real, weight: Real, /, *, eps: float, weight_offset: int) -> Real:
    centred = x - _mean_of(x)
    return centred / np.sqrt(_mean_of(centred * centred) + eps) * (weight + weight_offset)


def _variance(x: Real, eps: float) -> Real:
    """Return the inverse root of the variance."""
    return 1 / np.sqrt(_mean_of((x - _mean_of(x)) ** 2) + eps)


def _unbiased(squares: Real) -> Real:
    """Return the sum of squares divided by one less than their number."""
    return squares.sum(axis=-1, keepdims=True) / (squares.shape[-1] - 1)


@around
def _weight_first(function: Function, x: Real, weight: Real, /, *, eps: float, weight_offset: int) -> Real:
    """The weight is multiplied before the mean of squares is taken."""
    return function(x * (weight + weight_offset), np.ones_like(weight), eps=eps, weight_offset=0)


def _rounded_first(dtype: str) -> Wrap:
    """Return a wrap that rounds the normalized x to `dtype` before the weight."""
    narrow = narrowed(dtype)

    def deviating(function: Function, x: Real, weight: Real, /, *, eps: float, weight_offset: int) -> Real:
        normed = function(x, np.ones_like(weight), eps=eps, weight_offset=0)
        return narrow(normed) * (weight + weight_offset)

    return around(deviating)


def _narrow_squares(dtype: str) -> Callable[[Real, float], Real]:
    narrow = narrowed(dtype)

    def inverse(x: Real, eps: float) -> Real:
        return 1 / np.sqrt(_mean_of(narrow(x * x)) + eps)

    return inverse


_deviation = deviations_of(OP)

DEVIATIONS = (
    _deviation("norm-layer-norm", "the mean of x is subtracted, as in LayerNorm", _layer_norm, hint=NO_MEAN),
    _deviation("norm-variance", "x is divided by the root of its variance, not of the mean of its squares", _normed(_variance),
               hint=NO_VARIANCE),
    _deviation("norm-variance-unbiased", "x is divided by the root of its variance over D - 1, not of the mean of its squares",
               _normed(lambda x, eps: 1 / np.sqrt(_unbiased((x - _mean_of(x)) ** 2) + eps)), hint=NO_VARIANCE),
    _deviation("norm-unbiased", "the sum of the squares is divided by D - 1, not by D",
               _normed(lambda x, eps: 1 / np.sqrt(_unbiased(x * x) + eps)), hint=UNBIASED),
    _deviation("norm-over-rows", "the mean is over rows (tokens or heads), not over channels", _normed(_rows), hint=AXIS),
    _deviation("norm-over-heads", "the mean is over the last two axes together", _normed(_over(2)), hint=AXIS),
    _deviation("norm-over-all", "the mean is over all numbers of x", _normed(_over(9)), hint=AXIS),
    _deviation("norm-half-of-channels", "the mean is over the first half of the channels", _normed(_leading), hint=AXIS),
    _deviation("norm-whole-tiles", "channels beyond a multiple of four are left out of the sum of squares",
               _normed(_whole_tiles), hint="A vectorized sum has no tail."),
    _deviation("norm-padded-block", "the sum is divided by a power of two, the width of a padded block", _normed(_block),
               hint=MEAN),
    _deviation("norm-sum", "x is divided by the root of the sum of its squares, not of their mean",
               _normed(lambda x, eps: 1 / np.sqrt((x * x).sum(axis=-1, keepdims=True) + eps)), hint=MEAN),
    _deviation("norm-no-root", "x is divided by the mean of its squares, not by its root",
               _normed(lambda x, eps: 1 / (_mean_of(x * x) + eps)), hint="Take the root."),
    _deviation("norm-eps-outside", "eps is added to the root, not under it",
               _normed(lambda x, eps: 1 / (np.sqrt(_mean_of(x * x)) + eps)), hint=ROOT),
    _deviation("norm-eps-dropped", "eps is left out", _normed(lambda x, eps: 1 / np.sqrt(_mean_of(x * x))), hint=ROOT),
    _deviation("norm-eps-of-the-sum", "eps is added to the sum of the squares, before the division",
               _normed(lambda x, eps: 1 / np.sqrt(((x * x).sum(axis=-1, keepdims=True) + eps) / x.shape[-1])), hint=ROOT),
    _deviation("norm-eps-floor", "the mean of the squares is at least eps, instead of eps being added",
               _normed(lambda x, eps: 1 / np.sqrt(np.maximum(_mean_of(x * x), eps))), hint=ROOT),
    _deviation("norm-eps-default", "eps is always 1e-6", option(eps=lambda _: 1e-6), hint=DEFAULT),
    _deviation("norm-weight-missing", "the weight is left out", argument(1, np.ones_like), hint=IGNORED),
    _deviation("norm-weight-first", "x is multiplied by the weight before the mean of its squares is taken", _weight_first,
               hint="Normalize first, then multiply by the weight."),
    _deviation("norm-weight-divides", "x is divided by the weight",
               lambda f: lambda x, weight, /, **o: f(x, 1 / (weight + o["weight_offset"]), **{**o, "weight_offset": 0}),
               hint="Multiply by the weight."),
    _deviation("norm-offset-missing", "1 is not added to the weight", option(weight_offset=lambda _: 0), hint=OFFSET),
    _deviation("norm-offset-always", "1 is always added to the weight", option(weight_offset=lambda _: 1), hint=OFFSET),
    _deviation("norm-offset-twice", "the offset is added twice",
               lambda f: lambda x, weight, /, **o: f(x, weight + o["weight_offset"], **o), hint=OFFSET),
    *(
        Deviation(f"norm-rounded-first-{dtype}", f"the normalized x is rounded to {dtype} before the weight",
                  {OP: _rounded_first(dtype)}, exact=True,
                  hint="This is what Llama's class does: multiply by the weight in float32, or claim class low.")
        for dtype in ("bfloat16", "float16")
    ),
    *(
        _deviation(f"norm-squares-{dtype}", f"the squares are computed in {dtype}", _normed(_narrow_squares(dtype)),
                   hint=ROUND_ONCE)
        for dtype in ("bfloat16", "float16")
    ),
)  # fmt: skip
