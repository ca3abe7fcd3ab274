"""Attention logits: cases and known mistakes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .shared.logits import attention_cases, attention_forms, attention_gradient, changed_logits, is_square, usual_arrays
from .tools import Case, Function, Make, Real, Wrap, before, deviations_of, floats, held, narrowed, tf32
from .tools.hints import CAP_FIRST, IGNORED, ROOT_OF_SIZE, ROUND_ONCE, TENSOR_CORES

KERNEL: tuple[dict[str, Any], ...] = ({},)
EVERY_SIZE = True


_gradient = partial(attention_gradient, "attention_logits")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *attention_cases("attention_logits"),
        *attention_forms("attention_logits", values=False),
        _gradient("plain", (2, 2, 5), (2, 3, 5)),
        _gradient("scale", (2, 6), (3, 6), bits=24, scale=0.3125),
        _gradient("heads", (4, 2, 3), (2, 3, 3)),
        _gradient("bias", (2, 3, 3), (2, 2, 3), "a bias that all queries share", bias=(2, 1, 2), wrt="q k bias", scale=0.25),
        _gradient("softcap", (2, 2, 5), (2, 3, 5), scale=2.0, softcap=1.5),
        _gradient("softcap-and-bias", (2, 6), (3, 6), bias=(2, 3), wrt="q k bias", bits=24, scale=4.0, softcap=1.25),
        *(Case(f"attention_logits/usual/{name}", {}, arrays) for name, arrays in usual_arrays("qk") if is_square(arrays)),
    )


def more(make: Make) -> Iterator[Case]:
    """Yield second gradients."""
    options, arrays = make.call("again/gradient")
    cotangents = {"out": floats(2, 4, 5, seed=7) / 2}
    yield Case("attention_logits/again/gradient", options, arrays, kind="vjp", cotangents=cotangents)


def _rounded_first(dtype: str) -> Wrap:
    """Return a wrap in which products are rounded to `dtype` before the scale and the bias."""

    def change(function: Function, q: Real, k: Real, bias: Any, scale: Any, softcap: Any) -> Real:
        rounded = narrowed(dtype)(function(q, k, bias=None, scale=1.0, softcap=None))
        scaled = rounded * _factor(q, scale)
        scaled = scaled if softcap is None else softcap * np.tanh(scaled / softcap)
        return scaled if bias is None else scaled + bias

    return _changed_cap(change)


def _factor(q: Real, scale: float | None) -> float:
    return float(q.shape[-1] ** -0.5) if scale is None else scale


def _changed_cap(change: Callable[..., Any]) -> Wrap:
    """Return a wrap: `change` takes the function, queries, keys, bias, scale and softcap."""
    return lambda function: lambda q, k, /, *, bias=None, scale=None, softcap=None: change(function, q, k, bias, scale, softcap)


def _otherwise(formula: Callable[[Real, float], Real]) -> Wrap:
    """Return a wrap in which a formula of the scaled products and the softcap takes the place of the softcap."""

    def change(function: Function, q: Real, k: Real, bias: Any, scale: Any, softcap: Any) -> Real:
        if softcap is None:
            return function(q, k, bias=bias, scale=scale)
        logits = formula(function(q, k, scale=scale), softcap)
        return logits if bias is None else logits + bias

    return _changed_cap(change)


def _after_bias(function: Function, q: Real, k: Real, bias: Any, scale: Any, softcap: Any) -> Real:
    logits = function(q, k, bias=bias, scale=scale)
    return logits if softcap is None else softcap * np.tanh(logits / softcap)


def _before_scale(function: Function, q: Real, k: Real, bias: Any, scale: Any, softcap: Any) -> Real:
    if softcap is None:
        return function(q, k, bias=bias, scale=scale)
    logits = function(q, k, scale=1.0, softcap=softcap) * _factor(q, scale)
    return logits if bias is None else logits + bias


_deviation = deviations_of("attention_logits")
CAPPED = "It is c tanh(logits / c), with the same c twice."

DEVIATIONS = (
    _deviation("scale-missing", "logits are not scaled by default",
               changed_logits(lambda f, q, k, b, s: f(q, k, bias=b, scale=1.0 if s is None else s)), hint=ROOT_OF_SIZE,
               seen_in="T5's convention"),
    _deviation("scale-always-1", "logits are never scaled", changed_logits(lambda f, q, k, b, s: f(q, k, bias=b, scale=1.0)),
               hint=ROOT_OF_SIZE),
    _deviation("scale-ignored", "an explicit scale is ignored", changed_logits(lambda f, q, k, b, s: f(q, k, bias=b)),
               hint=IGNORED),
    _deviation("scale-by-dim", "logits are divided by D rather than its root",
               changed_logits(lambda f, q, k, b, s: f(q, k, bias=b, scale=1 / q.shape[-1] if s is None else s)),
               hint="Divide by the root of the size, not by the size."),
    _deviation("scale-multiplied", "logits are multiplied by the root of D, not divided by it",
               changed_logits(lambda f, q, k, b, s: f(q, k, bias=b, scale=q.shape[-1] ** 0.5 if s is None else s)),
               hint=ROOT_OF_SIZE, seen_in="esceptico/perceiver-io#9"),
    _deviation("scale-of-heads", "logits are divided by the root of the number of heads, not of D",
               changed_logits(lambda f, q, k, b, s: f(q, k, bias=b,
               scale=(q.shape[-3] if q.ndim > 2 else 1) ** -0.5 if s is None else s)),
               hint=ROOT_OF_SIZE, seen_in="tenstorrent/tt-metal#56789"),
    _deviation("bias-before-scale", "the bias is added before the scale",
               changed_logits(lambda f, q, k, b, s: f(q, k,
               bias=None if b is None else b * (q.shape[-1] ** -0.5 if s is None else s), scale=s)),
               hint="Add the bias after the scale.", seen_in="the convention of Falcon"),
    _deviation("bias-dropped", "the bias is not added", changed_logits(lambda f, q, k, b, s: f(q, k, scale=s)), hint=IGNORED),
    _deviation("scale-of-all-heads", "the root of all heads' size is taken, not of one head's",
               changed_logits(lambda f, q, k, b, s: f(q, k, bias=b,
               scale=((q.shape[-3] if q.ndim > 2 else 1) * q.shape[-1]) ** -0.5 if s is None else s)), hint=ROOT_OF_SIZE),
    _deviation("logits-tf32", "products are computed in TensorFloat-32",
               before(lambda q, k, /, **options: ((tf32(q), tf32(k)), options)), hint=TENSOR_CORES),
    _deviation("scale-after-bfloat16", "products are rounded to bfloat16 before the scale", _rounded_first("bfloat16"),
               hint=ROUND_ONCE),
    _deviation("scale-after-float16", "products are rounded to float16 before the scale", _rounded_first("float16"),
               hint=ROUND_ONCE),
    _deviation("softcap-dropped", "the softcap is not applied", _otherwise(lambda logits, c: logits), hint=IGNORED,
               seen_in="SGLang#33915, vllm-metal#665, sgl-project/sgl-kernel-xpu#491", one_of="softcap"),
    _deviation("softcap-after-bias", "the softcap is applied after the bias", _changed_cap(_after_bias), hint=CAP_FIRST,
               seen_in="x-transformers", one_of="softcap"),
    _deviation("softcap-before-scale", "the softcap is applied before the scale", _changed_cap(_before_scale),
               hint="Scale, then cap, then add the bias and the mask.", seen_in="huggingface/trl#5691", one_of="softcap"),
    _deviation("softcap-squared", "the tanh is multiplied by the logits, not by the softcap",
               _otherwise(lambda logits, c: logits * np.tanh(logits / c)), hint=CAPPED, seen_in="unslothai/unsloth-zoo#593",
               one_of="softcap"),
    _deviation("softcap-not-divided", "logits are not divided by the softcap before the tanh",
               _otherwise(lambda logits, c: c * np.tanh(logits)), hint=CAPPED, one_of="softcap"),
    _deviation("softcap-not-multiplied", "the tanh is not multiplied by the softcap",
               _otherwise(lambda logits, c: np.tanh(logits / c)), hint=CAPPED, one_of="softcap"),
    _deviation("softcap-clipped", "logits are clipped to the softcap",
               _otherwise(lambda logits, c: np.clip(logits, -c, c)), hint=CAPPED, one_of="softcap"),
    _deviation("query-bfloat16", "queries are held in bfloat16", held("bfloat16", 0), hint=ROUND_ONCE),
)  # fmt: skip
