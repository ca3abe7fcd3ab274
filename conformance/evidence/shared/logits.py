"""Cases and mistakes that attention and its logits share."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np

from ..tools import Case, Deviation, Function, Wrap, floats, form_case, gradient, reals, seed_of
from ..tools.hints import HEAD_BLOCKS

USUAL_SIZES = {  # query heads, key heads, queries, keys, channels
    "decode": (2, 1, 1, 6, 64),
    "128": (1, 1, 3, 3, 128),
}


def usual_arrays(names: str = "qkv") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield queries, keys and values of sizes that even the narrowest kernels compute."""
    for name, (heads, groups, queries, keys, channels) in USUAL_SIZES.items():
        sizes = {"q": (heads, queries), "k": (groups, keys), "v": (groups, keys)}
        arrays = {letter: floats(*sizes[letter], channels, seed=seed_of(name + letter)) for letter in names}
        yield name, {**arrays, "q": arrays["q"] * 0.25}


def is_square(arrays: dict[str, Any]) -> bool:
    """Return whether queries are as many as keys."""
    return bool(arrays["q"].shape[-2] == arrays["k"].shape[-2])


def attention_case(
    op: str, name: str, q: tuple[int, ...], k: tuple[int, ...], comment: str = "", *, width: int = 0, bits: int = 8,
    gain: float = 0.25, bias: Any = None, mask: Any = None, sinks: Any = None, kind: str = "value", tier: str = "core",
    **params: float,
) -> Case:  # fmt: skip
    """
    Return a case with q and k of these shapes.

    Values are `width` wide; without a width there are none. Bias and sinks are given, or their shape or number.
    `params` are the scale and the softcap.
    """
    shapes = {"q": q, "k": k} | ({"v": (*k[:-1], width)} if width else {})
    inputs: dict[str, Any] = {n: floats(*shape, seed=crc32((name + n).encode()), bits=bits) for n, shape in shapes.items()}
    inputs["q"] = inputs["q"] * gain
    if isinstance(bias, tuple):
        bias = floats(*bias, seed=crc32((name + "bias").encode()), bits=bits) * 0.25
    if isinstance(sinks, int):
        sinks = floats(sinks, seed=crc32((name + "sinks").encode()), bits=bits)
    optional = {"bias": bias, "mask": mask, "sinks": sinks}
    inputs |= {n: array for n, array in optional.items() if array is not None}
    return Case(f"{op}/{name}", params, inputs, comment, kind, tier)


def attention_cases(op: str, *, width: int = 0, small: int = 0) -> tuple[Case, ...]:
    """Return the cases of both operations; `width` and `small` are sizes of values, if there are any."""

    def case(*args: Any, **more: Any) -> Case:
        return attention_case(op, *args, **{"width": width, **more})

    return (
        case("plain/small", (2, 6), (3, 6), width=small, tier="smoke"),
        case("plain/53-bits", (3, 6), (4, 6), width=small, bits=53),
        case("plain/64", (3, 5, 64), (3, 7, 64), width=min(width, 9), gain=0.015625),
        case("plain/48", (5, 48), (2, 48), gain=0.25, bits=24),
        case("plain/one-key", (5, 6), (1, 6)),
        case("scale/given", (2, 5, 12), (2, 7, 12), scale=0.125),
        case("scale/one", (3, 6), (5, 6), "T5: no scale", gain=0.125, scale=1.0),
        case("scale/deepseek", (3, 5, 24), (3, 7, 24), bits=24, scale=0.1352337788608801,
              comment="a scale that carries YaRN's factor squared"),
        case("bias/batch", (2, 3, 5, 12), (2, 3, 7, 12), bias=(2, 1, 5, 7), gain=0.125),
        case("bias/shared", (3, 5, 6), (3, 7, 6), bias=(5, 7)),
        case("bias/with-scale", (3, 5, 6), (3, 4, 6), bias=(3, 5, 4), scale=0.25),
        case("bias/with-scale-24-bits", (2, 3, 6), (2, 5, 6), bias=(2, 3, 5), bits=24, scale=0.3125),
        case("softcap/gemma-2", (4, 3, 16), (2, 5, 16), gain=8, scale=0.0625, softcap=50.0),
        case("softcap/grok", (2, 3, 12), (2, 7, 12), gain=8, bits=24, scale=0.08838834764831845, softcap=30.0),
        case("softcap/small", (3, 6), (4, 6), "nearly every logit at the limit", gain=4, softcap=1.25),
        case("softcap/with-bias", (3, 5, 6), (3, 4, 6), bias=(3, 5, 4), gain=1, scale=0.5, softcap=2.0),
        case("softcap/with-bias-24-bits", (2, 3, 6), (2, 5, 6), bias=(2, 3, 5), gain=1, bits=24, softcap=1.5),
        case("refused/softcap-zero", (2, 6), (3, 6), "0 means none in kernels; here None does", kind="reject", softcap=0.0),
        case("heads/6-and-2", (6, 5, 8), (2, 7, 8)),
        case("heads/6-and-2-biased", (6, 5, 12), (2, 7, 12), bias=(6, 5, 7), gain=0.125),
        case("refused/heads", (5, 3, 6), (2, 7, 6), "5 query heads on 2 key heads", kind="reject"),
    )  # fmt: skip


def attention_forms(op: str, *, values: bool) -> tuple[Case, ...]:
    """Return the forms of queries and keys; with `values` also of values, masks and sinks."""

    def case(
        name: str, q: tuple[int, ...], k: tuple[int, ...], comment: str = "", *,
        bias: tuple[int, ...] | None = None, mask: Any = None, sinks: int | None = None, form: str = "",
    ) -> Case:  # fmt: skip
        shapes = {"q": q, "k": k} | ({"v": (*k[:-1], 5)} if values else {})
        inputs: dict[str, Any] = {n: reals(op + name + n, *shape) for n, shape in shapes.items()}
        inputs["q"] = inputs["q"] / 4
        if bias:
            inputs["bias"] = reals(op + name + "bias", *bias) / 4
        if mask is not None and values:
            inputs["mask"] = mask
        if sinks and values:
            inputs["sinks"] = reals(op + name + "sinks", sinks)
        return form_case(op, name, inputs, {}, comment, form=form)

    holes = np.asarray([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]]) > 0
    return (case("batch-one", (1, 2, 3, 6), (1, 2, 4, 6), bias=(1, 2, 3, 4), mask=holes),)


def attention_gradient(
    op: str, name: str, q: tuple[int, ...], k: tuple[int, ...], comment: str = "", *, width: int = 0,
    bias: tuple[int, ...] | None = None, mask: Any = None, sinks: int | None = None, wrt: str = "", bits: int = 8,
    **params: Any,
) -> Case:  # fmt: skip
    """Return a gradient of logits that stay within a few units, with a width of values too; of `wrt`, or of q, k and v."""
    shapes = {"q": q, "k": k} | ({"v": (*k[:-1], width)} if width else {})
    inputs: dict[str, Any] = {n: reals(op + name + n, *shape, bits=bits) for n, shape in shapes.items()}
    inputs["q"] = inputs["q"] / 8
    if bias:
        inputs["bias"] = reals(op + name + "bias", *bias, bits=bits) / 4
    if mask is not None:
        inputs["mask"] = mask
    if sinks is not None:
        inputs["sinks"] = reals(op + name + "sinks", sinks, bits=bits) / 2
    out = (*q[:-1], width or k[-2])
    wrt = wrt or " ".join(shapes)
    return gradient(op, name, inputs, {"out": out}, comment, wrt=wrt, bits=bits, **params)


def changed_logits(change: Callable[..., Any]) -> Wrap:
    """Return a wrap: `change` takes the function, with the softcap of the call, queries, keys, bias and scale."""
    return lambda function: (
        lambda q, k, /, *, bias=None, scale=None, softcap=None: change(partial(function, softcap=softcap), q, k, bias, scale)
    )


def _tiled(x: Any, heads: int) -> Any:
    return x if x.ndim < 3 or x.shape[-3] == heads else np.concatenate([x] * (heads // x.shape[-3]), axis=-3)


def _tiled_keys(function: Function, q: Any, k: Any, bias: Any, scale: Any) -> Any:
    return function(q, _tiled(k, q.shape[-3]) if q.ndim > 2 else k, bias=bias, scale=scale)


def _tiled_values(function: Function) -> Function:
    return lambda logits, v, mask, **sinks: function(logits, _tiled(v, logits.shape[-3]) if v.ndim > 2 else v, mask, **sinks)


DEVIATIONS = (
    Deviation("heads-tiled", "key heads are tiled rather than repeated in blocks",
              {"attention_logits": changed_logits(_tiled_keys), "softmax": _tiled_values}, hint=HEAD_BLOCKS,
              seen_in="TinyLlama#24"),
)  # fmt: skip
