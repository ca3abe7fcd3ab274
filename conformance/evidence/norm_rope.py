"""QK-norm and RoPE in one operation: cases and known mistakes."""

from typing import Any

import numpy as np

import posref

from .shared.rotary import LAYOUTS
from .tools import Case, cases_of, floats, gradient, reals, seed_of
from .tools.deviation import Function, Real, Wrap, after, around, deviations_of, narrowed, option
from .tools.hints import HALVES_EXCHANGED, NORM_SKIPPED, SKIPPED

OP = "norm_rope"

USUAL: dict[str, Any] = {"layout": "half", "eps": 2.0**-10, "weight_offset": 0, "precedence": "norm_first"}
WITH_OPTION = {"lanes": {"tail": 2}}
OTHER_VALUES: dict[str, Any] = {"eps": 0.5}
KERNEL: tuple[dict[str, Any], ...] = (
    {"layout": "half", "eps": 1e-6, "weight_offset": 0, "precedence": "norm_first"},
    {"layout": "interleaved", "eps": 1e-6, "weight_offset": 1, "precedence": "norm_first"},
)

_fused = cases_of(OP)


def _inputs(name: str, shape: tuple[int, ...], rows: tuple[int, ...], pairs: int | None, bits: int, size: float) -> Any:
    """Return x, a weight for each channel, and tables in (-1, 1) that are no unit circle."""
    width = abs(shape[-1])
    columns = (*rows, width // 2 if pairs is None else pairs)
    return {
        "x": reals(f"fused {name} x", *shape, bits=bits) * size,
        "weight": floats(width, seed=seed_of(f"fused {name} weight"), bits=bits) / 2,
        "cos": reals(f"fused {name} cos", *columns, bits=bits) / 4,
        "sin": reals(f"fused {name} sin", *columns, bits=bits) / 4,
    }


def _case(
    name: str, shape: tuple[int, ...], rows: tuple[int, ...], comment: str = "", *, pairs: int | None = None,
    bits: int = 8, size: float = 1.0, weight: tuple[int, ...] | None = None, kind: str = "value", tier: str = "core",
    form: str = "", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of an x of `shape` and tables of `rows`; weights of another shape than x's channels if given."""
    inputs = _inputs(name, shape, rows, pairs, bits, size)
    if weight is not None:
        inputs["weight"] = reals(f"fused {name} other", *weight) / 2
    options = {"layout": "half", "eps": 1e-6, "weight_offset": 0, "precedence": "norm_first", **params}
    return _fused(name, options, inputs, comment, kind=kind, tier=tier, form=form)


def _gradient(
    name: str, shape: tuple[int, ...], rows: tuple[int, ...], *, pairs: int | None = None, bits: int = 8,
    wrt: str = "x weight", **params: Any,
) -> Case:  # fmt: skip
    inputs = _inputs(f"gradient {name}", shape, rows, pairs, bits, 1.0)
    options = {"layout": "half", "eps": 1e-6, "weight_offset": 0, "precedence": "norm_first", **params}
    return gradient(OP, name, inputs, {"out": shape}, bits=bits, wrt=wrt, **options)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    orders = {"norm-first": "norm_first", "rope-first": "rope_first"}
    return (
        _case("norm-first/small", (3, 8), (3,), tier="smoke"),
        *(
            case
            for layout in LAYOUTS
            for words, precedence in orders.items()
            for case in (
                _case(f"{words}/{layout.replace('_', '-')}", (2, 3, 5, 12), (5,), bits=24, layout=layout,
                      precedence=precedence),
                _case(f"{words}/{layout.replace('_', '-')}-partial", (3, 2, 14), (2,), pairs=4, layout=layout,
                      precedence=precedence),
            )
        ),
        _case("norm-first/tokens-first", (2, 5, 3, 10), (2, 5, 1), pairs=3, bits=24),
        _case("norm-first/heads", (5, 7, 8), (5, 1), "tokens, heads and channels, as packed kernels have them"),
        _case("norm-first/one-head", (1, 5, 12), (5,), "one head, (1, T, D)"),
        _case("norm-first/one-head-rows", (3, 1, 2, 6), (3, 1, 2), layout="interleaved", weight_offset=1),
        _case("norm-first/large-eps", (4, 2, 10), (2,), eps=0.125, layout="interleaved"),
        _case("rope-first/small-numbers", (4, 10), (4,), size=2.0**-7, eps=1e-4, precedence="rope_first"),
        _case("norm-first/large-numbers", (3, 14), (3,), "the sum of their squares is above 65504", size=64.0),
        _case("norm-first/large-squares", (3, 14), (3,), "squares above 65504", size=512.0),
        _case("trailing/interleaved", (3, 2, 5, 14), (5,), pairs=4, lanes="trailing", layout="interleaved"),
        _case("trailing/half", (5, 22), (5,), pairs=6, bits=24, lanes="trailing", weight_offset=1),
        _case("trailing/rope-first", (3, 17), (3,), pairs=5, lanes="trailing", precedence="rope_first"),
        _case("models/gemma-3", (2, 3, 256), (3,), "(H, T, D)", weight_offset=1),
        _case("models/glm-4.5", (2, 3, 128), (3,), "64 of 128 channels rotate", pairs=32, eps=1e-5),
        _case("models/hunyuan", (2, 3, 128), (3,), eps=1e-5, precedence="rope_first"),
        _case("forms/batch-one", (1, 3, 5, 6), (5,)),
        _case("forms/one-token", (3, 1, 12), (1,), precedence="rope_first"),
        _case("refused/weight-width", (3, 8), (3,), "a weight for the channels that rotate alone", pairs=2,
              weight=(4,), kind="reject"),
        _case("refused/weight-of-heads", (2, 3, 8), (3,), "a weight for each head", weight=(2, 8), kind="reject"),
        _case("refused/wide-table", (3, 8), (3,), "more pairs than x has", pairs=5, kind="reject"),
        _case("refused/order", (3, 8), (3,), "no such order", precedence="norm", kind="reject"),
        _case("refused/eps", (3, 8), (3,), "above 0", eps=-1e-6, kind="reject"),
        _case("refused/rows-as-heads", (3, 3, 5, 8), (3, 5), "(B, T) would be taken for (H, T)", kind="reject"),
        _gradient("norm-first", (2, 4), (2,)),
        _gradient("rope-first", (2, 4), (2,), precedence="rope_first"),
        _gradient("partial", (2, 2, 5), (2,), pairs=1, layout="interleaved", weight_offset=1),
        _gradient("tables", (2, 2, 4), (2,), wrt="x cos sin"),
        _gradient("tables-rows", (2, 2, 5), (2, 2), pairs=1, wrt="weight cos sin", precedence="rope_first"),
        _gradient("24-bits", (2, 4), (2,), bits=24, weight_offset=1, layout="interleaved_to_half"),
        _gradient("trailing", (2, 5), (2,), pairs=2, lanes="trailing"),
        _gradient("strided", (2, 2, 4), (2,), weight_offset=1, view="non-contiguous"),
        _gradient("expanded", (-2, 2, 4), (2,), view="broadcast-view"),
    )  # fmt: skip


FIRST = "Compare which comes first: normalize, then rotate, except in models such as HunYuan."
ALL = "The norm is over all channels of the head, also over those that do not rotate."
HEADS = "Compare the number of warps or programs with tokens times heads, and what each writes."


def _parts(x: Real, cos: Real, lanes: str) -> tuple[slice, slice]:
    """Return which channels rotate, and which do not."""
    start, width = x.shape[-1] - 2 * cos.shape[-1], 2 * cos.shape[-1]
    return (slice(start, None), slice(0, start)) if lanes == "trailing" else (slice(0, width), slice(width, None))


def _over(which: int, *, kept: bool) -> Wrap:
    """
    Return a wrap whose norm is over the channels that rotate (0), or over the others (1).

    All channels are divided by it; with `kept` only these, and the rest stay as they are.
    """

    def deviating(
        function: Function, x: Real, weight: Real, cos: Real, sin: Real, /, *, lanes: Any = "leading", **options: Any
    ) -> Real:
        part = _parts(x, cos, lanes)[which]
        if not x.size or not x[..., part].size:
            return function(x, weight, cos, sin, lanes=lanes, **options)
        first = options["precedence"] == "rope_first"
        turned = posref.apply_rope(x, cos, sin, layout=options["layout"], lanes=lanes) if first else x
        square = (turned[..., part] ** 2).mean(axis=-1, keepdims=True) + options["eps"]
        normed = turned / np.sqrt(square) * (weight + options["weight_offset"])
        if kept:
            normed, scaled = np.array(turned, dtype=np.float64), normed
            normed[..., part] = scaled[..., part]
        if first:
            return normed
        return posref.apply_rope(normed, cos, sin, layout=options["layout"], lanes=lanes)

    return around(deviating)


@around
def _skipped(
    function: Function, x: Real, weight: Real, cos: Real, sin: Real, /, *, layout: Any, lanes: Any = "leading", **_: Any
) -> Real:
    return posref.apply_rope(x, cos, sin, layout=layout, lanes=lanes)


@around
def _twice(function: Function, x: Real, weight: Real, cos: Real, sin: Real, /, **options: Any) -> Real:
    eps, weight_offset = options["eps"], options["weight_offset"]
    return posref.rms_norm(function(x, weight, cos, sin, **options), weight, eps=eps, weight_offset=weight_offset)


@around
def _turned_twice(function: Function, x: Real, weight: Real, cos: Real, sin: Real, /, **options: Any) -> Real:
    """The rotation is applied twice, on the same side of the norm."""
    rotation = {"layout": options["layout"], "lanes": options.get("lanes", "leading")}
    if options["precedence"] == "rope_first":
        return function(posref.apply_rope(x, cos, sin, **rotation), weight, cos, sin, **options)
    return posref.apply_rope(function(x, weight, cos, sin, **options), cos, sin, **rotation)


def _heads(which: slice, *, axis: int) -> Wrap:
    """Return a wrap that leaves some heads, which lie along an axis, as they are."""

    def change(out: Real, x: Real, *rest: Any, **options: Any) -> Real:
        if x.ndim < -axis:
            return out
        out = np.moveaxis(np.array(out), axis, 0)
        out[which] = np.moveaxis(x, axis, 0)[which]
        return np.moveaxis(out, 0, axis)

    return after(change)


@around
def _mean_of_unrotated(
    function: Function, x: Real, weight: Real, cos: Real, sin: Real, /, *, lanes: Any = "leading", **options: Any
) -> Real:
    """The rotation comes first, but not for the mean of squares."""
    if options["precedence"] == "norm_first":
        return function(x, weight, cos, sin, lanes=lanes, **options)
    turned = posref.apply_rope(x, cos, sin, layout=options["layout"], lanes=lanes)
    root = np.sqrt((x**2).mean(axis=-1, keepdims=True) + options["eps"])
    return turned / root * (weight + options["weight_offset"])


@around
def _weight_of_pairs(
    function: Function, x: Real, weight: Real, cos: Real, sin: Real, /, *, lanes: Any = "leading", **options: Any
) -> Real:
    """The second channel of a pair has the first one's weight."""
    part, half = _parts(x, cos, lanes)[0], cos.shape[-1]
    weights = np.array(weight, dtype=np.float64)
    turned = weights[part]
    if options["layout"] == "half":
        turned[half:] = turned[:half]
    else:
        turned[1::2] = turned[::2]
    weights[part] = turned
    return function(x, weights, cos, sin, lanes=lanes, **options)


def _rounded_between(dtype: str) -> Wrap:
    """Return a wrap that rounds to `dtype` between norm and rotation."""
    narrow = narrowed(dtype)

    def deviating(function: Function, x: Real, weight: Real, cos: Real, sin: Real, /, **options: Any) -> Real:
        lanes = options.get("lanes", "leading")
        norm = {"eps": options["eps"], "weight_offset": options["weight_offset"]}
        if options["precedence"] == "rope_first":
            turned = posref.apply_rope(x, cos, sin, layout=options["layout"], lanes=lanes)
            return posref.rms_norm(narrow(turned), weight, **norm)
        return posref.apply_rope(narrow(posref.rms_norm(x, weight, **norm)), cos, sin, layout=options["layout"], lanes=lanes)

    return around(deviating)


_deviation = deviations_of(OP)

DEVIATIONS = (
    _deviation("fused-norm-after", "x is rotated first, then normalized", option(precedence=lambda _: "rope_first"), hint=FIRST,
               seen_in="the convention of HunYuan"),
    _deviation("fused-norm-before", "x is normalized first, then rotated", option(precedence=lambda _: "norm_first"),
               hint=FIRST, seen_in="the convention of Qwen3"),
    _deviation("fused-norm-of-rotated", "the mean of squares is over the channels that rotate alone", _over(0, kept=False),
               hint=ALL),
    _deviation("fused-norm-of-others", "the mean of squares is over the channels that do not rotate", _over(1, kept=False),
               hint=ALL),
    _deviation("fused-tail-not-normalized", "channels that do not rotate are not normalized, and not in the mean",
               _over(0, kept=True), hint=ALL, seen_in="the convention of a fused kernel that copies the tail"),
    _deviation("fused-mean-before", "the mean of squares is that of x before the rotation", _mean_of_unrotated,
               hint="Take the mean after the rotation. A table with a factor, as YaRN's, changes it: cos^2 + sin^2 is not 1."),
    _deviation("fused-norm-skipped", "x is rotated, but not normalized", _skipped, hint=NORM_SKIPPED),
    _deviation("fused-norm-twice", "the result is normalized once more", _twice,
               hint="The model normalizes already: look for a second call."),
    _deviation("fused-rotation-skipped", "x is normalized, but not rotated",
               lambda _: lambda x, weight, cos, sin, /, *, eps, weight_offset, **o: posref.rms_norm(x, weight, eps=eps,
                                                                                                    weight_offset=weight_offset),
               hint=SKIPPED),
    _deviation("fused-tables-exchanged", "cosines and sines are exchanged",
               lambda f: lambda x, weight, cos, sin, /, **options: f(x, weight, sin, cos, **options),
               hint=HALVES_EXCHANGED),
    _deviation("fused-rotated-twice", "the rotation is applied twice", _turned_twice,
               hint="The model rotates already: look for a second call.", seen_in="NVIDIA/TensorRT-LLM#16378"),
    _deviation("fused-weight-of-pairs", "both channels of a pair have the weight of the first", _weight_of_pairs,
               hint="Each channel has a weight of its own: look at how weights are loaded beside pairs."),
    _deviation("fused-last-head", "the last head (axis -2) comes back as it was", _heads(slice(-1, None), axis=-2), hint=HEADS),
    _deviation("fused-tail-heads", "heads (axis -2) beyond a multiple of four come back as they were", after(
               lambda out, x, *rest, **options: np.concatenate(
                   [out[..., : x.shape[-2] // 4 * 4, :], x[..., x.shape[-2] // 4 * 4 :, :]], axis=-2) if x.ndim > 2 else out),
               hint=HEADS),
    _deviation("fused-last-head-outside", "the last head (axis -3) comes back as it was", _heads(slice(-1, None), axis=-3),
               hint=HEADS),
    *(
        _deviation(f"fused-rounded-between-{dtype}", f"the number between norm and rotation is rounded to {dtype}",
                   _rounded_between(dtype), hint="Keep float32 between the two, or claim class low.")
        for dtype in ("bfloat16", "float16")
    ),
)  # fmt: skip
