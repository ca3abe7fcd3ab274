"""Deviations of attention: scale, bias, mask, softmax, heads."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compose import Deviation, Function, Real, Wrap, argument, narrowed


def _logits(change: Callable[..., Any]) -> Wrap:
    return lambda function: lambda q, k, /, *, bias=None, scale=None: change(function, q, k, bias, scale)


def _tiled(x: Any, heads: int) -> Any:
    return x if x.ndim < 3 or x.shape[-3] == heads else np.concatenate([x] * (heads // x.shape[-3]), axis=-3)


def _mask_constant(value: float) -> dict[str, Wrap]:
    def wrap(function: Function) -> Function:
        return lambda logits, v, mask, /, **sinks: function(
            logits if mask is None else np.where(mask, logits, value), v, None, **sinks
        )

    return {"softmax": wrap}


def _wrong_axis(logits: Real, v: Real, mask: Any, **sinks: Any) -> Real:
    logits = np.where(mask, logits, -np.inf) if mask is not None else logits
    top = np.max(logits, axis=-2, keepdims=True)
    exps = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
    total = np.sum(exps, axis=-2, keepdims=True)
    return (exps / np.where(total == 0, 1.0, total)) @ (np.repeat(v, logits.shape[-3] // v.shape[-3], -3) if v.ndim > 2 else v)


def _mean_of_row(function: Function) -> Function:
    """A row with nothing allowed is the mean of all values."""

    def deviating(logits: Real, v: Real, mask: Any, /, **sinks: Any) -> Real:
        if mask is None:
            return function(logits, v, mask, **sinks)
        nothing = ~np.any(mask, axis=-1, keepdims=True)
        return function(np.where(nothing, 0.0, logits), v, mask | nothing, **sinks)

    return deviating


def _plus_one(function: Function) -> Function:
    """A key of logit 0 and value 0 besides those there are."""

    def deviating(logits: Real, v: Real, mask: Any, /, **sinks: Any) -> Real:
        allowed = np.broadcast_to(True if mask is None else mask, logits.shape)
        logits, allowed = (
            np.concatenate([x, np.full((*x.shape[:-1], 1), new)], axis=-1) for x, new in ((logits, 0.0), (allowed, True))
        )
        return function(logits, np.concatenate([v, np.zeros((*v.shape[:-2], 1, v.shape[-1]))], axis=-2), allowed, **sinks)

    return deviating


DEVIATIONS = (
    Deviation("scale-missing", "logits are not scaled by default", {"attention_logits": _logits(
        lambda f, q, k, b, s: f(q, k, bias=b, scale=1.0 if s is None else s))}, "", "T5's convention"),
    Deviation("scale-always-1", "logits are never scaled", {"attention_logits": _logits(lambda f, q, k, b, s: f(q, k, bias=b, scale=1.0))}),
    Deviation("scale-ignored", "an explicit scale is ignored", {"attention_logits": _logits(lambda f, q, k, b, s: f(q, k, bias=b))}),
    Deviation("scale-by-dim", "logits are divided by D rather than its root", {"attention_logits": _logits(
        lambda f, q, k, b, s: f(q, k, bias=b, scale=1 / q.shape[-1] if s is None else s))},
        hint="Divide by the root of the size, not by the size."),
    Deviation("bias-before-scale", "the bias is added before the scale", {"attention_logits": _logits(
        lambda f, q, k, b, s: f(q, k, bias=None if b is None else b * (q.shape[-1] ** -0.5 if s is None else s), scale=s))},
        "Add the bias after the scale.",
        "the convention of Falcon"),
    Deviation("bias-dropped", "the bias is not added", {"attention_logits": _logits(lambda f, q, k, b, s: f(q, k, scale=s))}),
    Deviation("heads-tiled", "key heads are tiled rather than repeated in blocks", {
        "attention_logits": _logits(lambda f, q, k, b, s: f(q, _tiled(k, q.shape[-3]) if q.ndim > 2 else k, bias=b, scale=s)),
        "softmax": lambda f: lambda logits, v, mask, **sinks: f(logits, _tiled(v, logits.shape[-3]) if v.ndim > 2 else v, mask, **sinks)},
        "", "TinyLlama#24"),
    Deviation("query-bfloat16", "queries are held in bfloat16", {"attention_logits": argument(0, narrowed("bfloat16"))}),
    Deviation("mask-constant-1e4", "masked logits are -10000 rather than excluded", _mask_constant(-1e4), "", "transformers' older models"),
    Deviation("mask-constant-1e5", "masked logits are -100000 rather than excluded", _mask_constant(-1e5)),
    Deviation("mask-inverted", "the mask is inverted", {"softmax": lambda f: lambda x, v, m, **s: f(x, v, None if m is None else ~m, **s)}),
    Deviation("mask-ignored", "the mask is ignored", {"softmax": lambda f: lambda x, v, m, **s: f(x, v, None, **s)}),
    Deviation("masked-row-mean", "a row that may see nothing is the mean of all values", {"softmax": _mean_of_row},
              hint="A row that may see nothing gives zeros: treat it after the softmax."),
    Deviation("softmax-plus-one", "one is added to the softmax's denominator", {"softmax": _plus_one},
              "A key of logit 0 and value 0 is attended to as well.", "PyTorch's add_zero_attn"),
    Deviation("softmax-over-queries", "the softmax runs over queries rather than keys", {"softmax": lambda _: _wrong_axis},
              hint="The softmax runs over the last axis, the keys."),
)  # fmt: skip
