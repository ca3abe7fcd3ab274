"""LayerNorm and RoPE in one operation: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

import posref

from .shared.rotary import LAYOUTS
from .tools import Case, Function, Real, Wrap, argument, around, cases_of, deviations_of, gradient, narrowed, option, reals
from .tools.hints import DEFAULT, HALVES_EXCHANGED, IGNORED, NORM_SKIPPED, SKIPPED

OP = "layer_norm_rope"

USUAL: dict[str, Any] = {"layout": "half", "eps": 2.0**-10, "precedence": "norm_first"}
WITH_OPTION = {"lanes": {"tail": 2}}
GAPS = ("single-head-unrotated",)  # no x has one head before its tokens
OTHER_VALUES: dict[str, Any] = {"eps": 0.5}
KERNEL: tuple[dict[str, Any], ...] = (
    {"layout": "half", "eps": 1e-6, "precedence": "norm_first"},
    {"layout": "interleaved", "eps": 1e-6, "precedence": "norm_first"},
)

_fused = cases_of(OP)


def _inputs(name: str, shape: tuple[int, ...], rows: tuple[int, ...], pairs: int | None, bits: int, size: float = 1.0) -> Any:
    """Return x with a mean other than 0, a weight and a bias for each channel, and tables in (-1, 1) off the unit circle."""
    width = abs(shape[-1])
    columns = (*rows, width // 2 if pairs is None else pairs)
    x = reals(f"{OP} {name} x", *shape, bits=bits) * size
    return {
        "x": np.where(np.arange(width) % 3 > 0, np.abs(x), x),
        "weight": reals(f"{OP} {name} weight", width, bits=bits) / 2,
        "bias": reals(f"{OP} {name} bias", width, bits=bits) / 2,
        "cos": reals(f"{OP} {name} cos", *columns, bits=bits) / 4,
        "sin": reals(f"{OP} {name} sin", *columns, bits=bits) / 4,
    }


def _case(
    name: str, shape: tuple[int, ...], rows: tuple[int, ...], comment: str = "", *, pairs: int | None = None, bits: int = 8,
    size: float = 1.0, bias: tuple[int, ...] | None = None, kind: str = "value", tier: str = "core", form: str = "",
    **params: Any,
) -> Case:  # fmt: skip
    """Return a case of an x of `shape` and tables of `rows`; a bias of another shape than x's channels if given."""
    inputs = _inputs(name, shape, rows, pairs, bits, size)
    if bias is not None:
        inputs["bias"] = reals(f"{OP} {name} other", *bias) / 2
    options = {"layout": "half", "eps": 1e-6, "precedence": "norm_first", **params}
    return _fused(name, options, inputs, comment, kind=kind, tier=tier, form=form)


def _gradient(
    name: str, shape: tuple[int, ...], rows: tuple[int, ...], *, pairs: int | None = None, wrt: str = "x weight bias",
    bits: int = 8, **params: Any,
) -> Case:  # fmt: skip
    inputs = _inputs(f"gradient {name}", shape, rows, pairs, bits)
    options = {"layout": "half", "eps": 1e-3, "precedence": "norm_first", **params}
    return gradient(OP, name, inputs, {"out": shape}, bits=bits, wrt=wrt, **options)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("norm-first/small", (3, 8), (3,), tier="smoke"),
        *(
            _case(f"{precedence.replace('_', '-')}/{layout.replace('_', '-')}-{pairs}", (2, 3, 5, 12), (5,), bits=24,
                  layout=layout, precedence=precedence, pairs=pairs)
            for layout in LAYOUTS
            for precedence, pairs in (("norm_first", 6), ("norm_first", 4), ("rope_first", 5))
        ),
        _case("norm-first/tokens-first", (2, 5, 3, 10), (2, 5, 1), pairs=3, bits=24),
        _case("norm-first/heads", (5, 7, 8), (5, 1), "tokens, heads and channels"),
        _case("norm-first/large-eps", (4, 2, 10), (2,), eps=0.125, layout="interleaved"),
        _case("rope-first/small-numbers", (4, 10), (4,), size=2.0**-7, eps=1e-4, precedence="rope_first"),
        _case("norm-first/large-squares", (3, 14), (3,), "squares above 65504", size=512.0),
        _case("trailing/interleaved", (3, 2, 5, 14), (5,), pairs=4, lanes="trailing", layout="interleaved"),
        _case("trailing/rope-first", (3, 17), (3,), pairs=5, lanes="trailing", precedence="rope_first"),
        _case("models/deepseek-v3.2", (3, 128), (3,), "the indexer's key: 64 of 128 channels rotate", pairs=32),
        _case("models/glm-5", (2, 128), (2,), pairs=32, layout="interleaved_to_half"),
        _case("forms/batch-one", (1, 3, 5, 6), (5,)),
        _case("forms/one-token", (3, 1, 12), (1,), precedence="rope_first"),
        _case("refused/bias-width", (3, 8), (3,), "a bias for the channels that rotate alone", pairs=2, bias=(4,),
              kind="reject"),
        _case("refused/bias-of-heads", (2, 3, 8), (3,), "a bias for each head", bias=(2, 8), kind="reject"),
        _case("refused/wide-table", (3, 8), (3,), "more pairs than x has", pairs=5, kind="reject"),
        _case("refused/order", (3, 8), (3,), "no such order", precedence="norm", kind="reject"),
        _case("refused/eps", (3, 8), (3,), "above 0", eps=0.0, kind="reject"),
        _gradient("norm-first", (2, 4), (2,)),
        _gradient("rope-first", (2, 4), (2,), precedence="rope_first"),
        _gradient("partial", (2, 2, 5), (2,), pairs=1, layout="interleaved"),
        _gradient("tables", (2, 2, 4), (2,), wrt="x cos sin"),
        _gradient("tables-rows", (2, 5), (2,), pairs=2, wrt="bias cos sin", lanes="trailing"),
        _gradient("24-bits", (2, 4), (2,), bits=24, layout="interleaved_to_half"),
    )  # fmt: skip


FIRST = "Compare which comes first: normalize, then rotate, in indexers."
MEAN = "LayerNorm subtracts the mean, and divides by the root of the variance over D, with eps under the root."
BIAS = "The bias is added after the weight and before the rotation."


def _norm(change: Callable[[Real, Real, Real, float], Real]) -> Wrap:
    """Return a wrap with another norm: `change` takes x, weight, bias and eps."""

    def deviating(function: Function, x: Real, weight: Real, bias: Real, cos: Real, sin: Real, /, **options: Any) -> Real:
        rotation = {"layout": options["layout"], "lanes": options.get("lanes", "leading")}
        first = options["precedence"] == "norm_first"
        turned = x if first else posref.apply_rope(x, cos, sin, **rotation)
        normed = change(turned, weight, bias, options["eps"]) if x.size else turned
        return posref.apply_rope(normed, cos, sin, **rotation) if first else normed

    return around(deviating)


def _of(centred: Callable[[Real], Real], mean: Callable[[Real], Real]) -> Wrap:
    """Return a wrap that subtracts something else, and divides by the root of something else."""
    return _norm(lambda x, w, b, eps: w * centred(x) / np.sqrt(mean(x) + eps) + b)


def _centred(x: Real) -> Real:
    return x - x.mean(axis=-1, keepdims=True)


def _variance(x: Real) -> Real:
    return (_centred(x) ** 2).mean(axis=-1, keepdims=True)


@around
def _bias_late(function: Function, x: Real, weight: Real, bias: Real, cos: Real, sin: Real, /, **options: Any) -> Real:
    """The bias is added after the rotation."""
    return function(x, weight, 0 * bias, cos, sin, **options) + bias


def _rotated_alone(x: Real, w: Real, b: Real, eps: float) -> Real:
    """Normalize over the first half of the channels."""
    part = x[..., : max(x.shape[-1] // 2, 1)]
    return w * (x - part.mean(axis=-1, keepdims=True)) / np.sqrt(_variance(part) + eps) + b


def _narrow_between(dtype: str) -> Wrap:
    narrow = narrowed(dtype)
    return _norm(lambda x, w, b, eps: narrow(w * _centred(x) / np.sqrt(_variance(x) + eps) + b))


_deviation = deviations_of(OP)

DEVIATIONS = (
    _deviation("layer-norm-after", "x is rotated first, then normalized", option(precedence=lambda _: "rope_first"),
               hint=FIRST),
    _deviation("layer-norm-before", "x is normalized first, then rotated", option(precedence=lambda _: "norm_first"),
               hint=FIRST),
    _deviation("layer-norm-no-mean", "the mean is not subtracted, as in RMS normalization",
               _of(lambda x: x, lambda x: (x * x).mean(axis=-1, keepdims=True)), hint=MEAN),
    _deviation("layer-norm-of-squares", "the mean is subtracted, but not for the variance",
               _of(_centred, lambda x: (x * x).mean(axis=-1, keepdims=True)), hint=MEAN),
    _deviation("layer-norm-unbiased", "the variance is the sum over D - 1",
               _of(_centred, lambda x: _variance(x) * (x.shape[-1] / max(x.shape[-1] - 1, 1))), hint=MEAN),
    _deviation("layer-norm-eps-outside", "eps is added to the root, not under it",
               _norm(lambda x, w, b, eps: w * _centred(x) / (np.sqrt(_variance(x)) + eps) + b), hint=MEAN),
    _deviation("layer-norm-weight-missing", "the weight is left out", argument(1, np.ones_like), hint=IGNORED),
    _deviation("layer-norm-weight-offset", "1 is added to the weight", argument(1, lambda w: w + 1),
               hint="LayerNorm's weights are stored as they are."),
    _deviation("layer-norm-half", "mean and variance are over half of the channels", _norm(_rotated_alone), hint=MEAN),
    _deviation("layer-norm-eps-default", "eps is always 1e-5", option(eps=lambda _: 1e-5), hint=DEFAULT),
    _deviation("layer-norm-bias-missing", "the bias is left out", argument(2, np.zeros_like), hint=IGNORED),
    _deviation("layer-norm-bias-scaled", "the bias is added before the weight",
               _norm(lambda x, w, b, eps: w * (_centred(x) / np.sqrt(_variance(x) + eps) + b)), hint=BIAS),
    _deviation("layer-norm-bias-late", "the bias is added after the rotation", _bias_late, hint=BIAS),
    _deviation("layer-norm-skipped", "x is rotated, but not normalized", _norm(lambda x, w, b, eps: x), hint=NORM_SKIPPED),
    _deviation("layer-norm-not-rotated", "x is normalized, but not rotated",
               lambda f: lambda x, w, b, c, s, /, **o: f(x, w, b, np.ones_like(c), np.zeros_like(s), **o), hint=SKIPPED),
    _deviation("layer-norm-tables-exchanged", "cosines and sines are exchanged",
               lambda f: lambda x, w, b, c, s, /, **o: f(x, w, b, s, c, **o),
               hint=HALVES_EXCHANGED),
    *(
        _deviation(f"layer-norm-rounded-between-{dtype}", f"the normalized x is rounded to {dtype}", _narrow_between(dtype),
                   hint="Keep float32 between norm and rotation, or claim class low.")
        for dtype in ("bfloat16", "float16")
    ),
)  # fmt: skip
