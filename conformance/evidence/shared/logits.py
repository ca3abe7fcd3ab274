"""What attention and its logits share: flags, cases and mistakes."""

from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import numpy as np

from ...model import Case, Flag
from ..tools.cotangents import gradient
from ..tools.deviation import Deviation, Function, Wrap
from ..tools.forms import form
from ..tools.hints import HEAD_BLOCKS
from ..tools.numbers import floats, reals, seed_of

FLAGS = {
    "attention-scale": Flag("logits not divided by sqrt(D), or divided by D", "T5's convention, muP's 1/d"),
    "attention-scale-given": Flag("a given scale ignored, or applied besides 1/sqrt(D)", "mobius #548, Megatron #1429"),
    "attention-bias-order": Flag("the bias added before the scale", "Falcon's ALiBi"),
    "attention-bias-shape": Flag("a bias without the head or batch axis broadcast along another"),
    "attention-heads": Flag("key heads tiled where they repeat in blocks", "TinyLlama #24"),
    "attention-downcast": Flag("24-bit queries, keys or values narrowed on the way"),
    "attention-transposed": Flag("queries taken for keys, or a softmax over the queries"),
    "attention-decode": Flag("one query or one key handled as a square", "x-transformers 74f241d"),
    "attention-true-size": Flag("a real head size not reproduced"),
    "attention-empty": Flag("no query: a crash or a wrong shape"),
    "attention-refuse": Flag("heads that do not divide, a mask of numbers, or sinks of key heads accepted"),
    "causal": Flag("the diagonal left out, or the mask of a decode step begun at the first key", "flash-attention before 2.1"),
    "square": Flag("queries that do not see their own key, or axes exchanged, where queries are as many as keys"),
}


USUAL_SIZES = {  # query heads, key heads, queries, keys, channels
    "square": (2, 2, 5, 5, 6),
    "groups": (4, 2, 3, 3, 10),
    "decode": (2, 1, 1, 6, 64),
    "chunk": (3, 3, 2, 7, 12),
    "64": (2, 1, 4, 4, 64),
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
    op: str, name: str, flags: str, q: tuple[int, ...], k: tuple[int, ...], comment: str = "", *, width: int = 0, bits: int = 8,
    gain: float = 0.25, bias: Any = None, mask: Any = None, scale: float | None = None, sinks: Any = None, kind: str = "value",
    tier: str = "core",
) -> Case:  # fmt: skip
    """
    Return a case with q and k of these shapes.

    Values are `width` wide; without a width there are none. Bias and sinks are given, or their shape or number.
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
    params = {} if scale is None else {"scale": scale}
    return Case(f"{op}/{name}", params, inputs, tuple(f"attention-{flag}" for flag in flags.split()), comment, kind, tier)


def attention_cases(op: str, *, width: int = 0, small: int = 0) -> tuple[Case, ...]:
    """Return what both operations are asked; `width` and `small` are those of values, where there are any."""

    def case(*args: Any, **more: Any) -> Case:
        return attention_case(op, *args, **{"width": width, **more})

    return (
        case("plain/small", "scale transposed" if width else "scale", (2, 6), (3, 6), width=small, tier="smoke"),
        case("plain/24-bits", "downcast scale", (2, 5, 12), (2, 7, 12), bits=24),
        case("plain/53-bits", "downcast scale", (3, 6), (4, 6), width=small, bits=53),
        case("plain/batch", "transposed scale", (2, 3, 5, 20), (2, 3, 7, 20), gain=0.125),
        case("plain/64", "true-size scale", (3, 5, 64), (3, 7, 64), width=min(width, 9), gain=0.015625),
        case("plain/48", "true-size scale", (5, 48), (2, 48), gain=0.25, bits=24),
        case("plain/one-query", "decode", (3, 1, 6), (3, 7, 6)),
        case("plain/one-key", "decode", (5, 6), (1, 6)),
        case("plain/no-query", "empty", (3, 0, 6), (3, 4, 6)),
        case("scale/given", "scale-given", (2, 5, 12), (2, 7, 12), scale=0.125),
        case("scale/one", "scale-given scale", (3, 6), (5, 6), "T5: no scale", gain=0.125, scale=1.0),
        case("scale/deepseek", "scale-given true-size", (3, 5, 24), (3, 7, 24), bits=24, scale=0.1352337788608801,
              comment="a scale that carries YaRN's factor squared"),
        case("bias/full", "bias-order", (2, 3, 5, 6), (2, 3, 7, 6), bias=(2, 3, 5, 7)),
        case("bias/heads", "bias-order bias-shape", (2, 3, 5, 12), (2, 3, 7, 12), bias=(3, 1, 7), bits=24),
        case("bias/batch", "bias-shape bias-order", (2, 3, 5, 12), (2, 3, 7, 12), bias=(2, 1, 5, 7), gain=0.125),
        case("bias/shared", "bias-shape", (3, 5, 6), (3, 7, 6), bias=(5, 7)),
        case("bias/with-scale", "bias-order scale-given", (3, 5, 6), (3, 4, 6), bias=(3, 5, 4), scale=0.25),
        case("bias/with-scale-24-bits", "bias-order scale-given downcast", (2, 3, 6), (2, 5, 6), bias=(2, 3, 5),
              bits=24, scale=0.3125),
        case("heads/6-and-2", "heads", (6, 5, 8), (2, 7, 8)),
        case("heads/6-and-3", "heads", (2, 6, 5, 12), (2, 3, 7, 12), bits=24, gain=0.125),
        case("heads/6-and-1", "heads", (6, 4, 10), (1, 7, 10)),
        case("heads/6-and-2-biased", "heads bias-shape", (6, 5, 12), (2, 7, 12), bias=(6, 5, 7), gain=0.125),
        case("refused/heads", "refuse", (5, 3, 6), (2, 7, 6), "5 query heads on 2 key heads", kind="reject"),
    )  # fmt: skip


def attention_forms(op: str, *, values: bool) -> tuple[Case, ...]:
    """Return the forms of queries and keys; with `values` also of values, masks and sinks."""

    def case(
        name: str, flags: str, q: tuple[int, ...], k: tuple[int, ...], comment: str = "", *,
        bias: tuple[int, ...] | None = None, mask: Any = None, sinks: int | None = None,
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
        return form(op, name, flags, inputs, {}, comment)

    holes = np.asarray([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]]) > 0
    return (
        case("strided", "non-contiguous", (2, 3, 4, 10), (2, 3, 5, 10), "of a fused product, heads before tokens"),
        case("strided-biased", "non-contiguous", (2, 3, 6), (2, 4, 6), bias=(2, 3, 4), mask=holes, sinks=2),
        case("expanded", "broadcast-view", (2, 3, 4, 6), (2, -3, 5, 6), "one key head stands for three"),
        case("expanded-biased", "broadcast-view", (2, 3, 6), (2, 4, 6), bias=(-2, 3, 4), mask=np.stack([holes] * 2)),
        case("batch-one", "batch-one", (1, 2, 3, 6), (1, 2, 4, 6), bias=(1, 2, 3, 4), mask=holes),
        case("length-one", "length-one batch-one", (1, 3, 1, 6), (1, 3, 1, 6), "one query and one key", sinks=3),
        case("no-head", "length-zero", (2, 0, 3, 6), (2, 0, 4, 6)),
    )


def attention_gradient(
    op: str, name: str, flags: str, q: tuple[int, ...], k: tuple[int, ...], comment: str = "", *, width: int = 0,
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
    return gradient(op, name, flags, inputs, {"out": out}, comment, wrt=wrt, bits=bits, **params)


def changed_logits(change: Callable[..., Any]) -> Wrap:
    """Return a wrap: `change` takes the function, queries, keys, bias and scale."""
    return lambda function: lambda q, k, /, *, bias=None, scale=None: change(function, q, k, bias, scale)


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
