"""Deviations of sinusoids and learned tables."""

from typing import Any

import numpy as np

from .compose import Deviation, Function, Real, Wrap, after, always, argument, narrowed, option


def _pairs_swapped(out: Real, *args: Any, layout: str, **options: Any) -> Real:
    half = out.shape[-1] // 2
    if layout == "interleaved":
        pairs = out[..., : 2 * half].reshape(*out.shape[:-1], half, 2)[..., ::-1]
        return np.concatenate([pairs.reshape(*out.shape[:-1], 2 * half), out[..., 2 * half :]], axis=-1)
    return np.concatenate([out[..., half:], out[..., :half]], axis=-1)


def _halves_swapped(out: Real, *args: Any, layout: str, **options: Any) -> Real:
    return out if layout == "interleaved" else _pairs_swapped(out, layout=layout)


def _cos_exponent(function: Function) -> Function:
    """Every column has its own exponent."""

    def deviating(p: Any, dim: int, /, *, layout: str, base: float = 10_000.0, endpoint: bool = False, **rest: Any) -> Any:
        if dim % 2:
            return function(p, dim, layout=layout, base=base, endpoint=endpoint, **rest)
        half, step = dim // 2, 1 / (dim // 2 - 1) if endpoint else 2 / dim
        options = {
            "layout": "sin_cos",
            "base": base,
            "endpoint": endpoint,
            "scale": rest.get("scale", 1.0),
            "dtype": np.float64,
        }
        sin, cos = function(p, dim, **options)[..., :half], function(p * base ** (-step / 2), dim, **options)[..., half:]
        if layout == "interleaved":
            return np.stack([sin, cos], axis=-1).reshape(*sin.shape[:-1], dim)
        return np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)

    return deviating


def _zero_first(out: Real, p: Any, dim: int, /, *, odd: str = "refused", **options: Any) -> Real:
    """The first column holds the zeros that belong in the last."""
    return np.roll(out, 1, axis=-1) if dim % 2 and odd == "zeros" else out


def _angle_scaled(function: Function) -> Function:
    def deviating(p: Any, dim: int, /, *, scale: float = 1.0, **options: Any) -> Any:
        return function(p if scale == 1 else p * scale, dim, **options)

    return deviating


def _outside(change: Function) -> Wrap:
    """Return a wrap in which `change` says which rows of the table are taken where they are to be limited."""

    def wrap(function: Function) -> Function:
        def deviating(p: Any, table: Any, /, *, offset: int = 0, clip: bool = False) -> Any:
            return function(change(p + offset, len(table)) if clip else p + offset, table)

        return deviating

    return wrap


def _zeros_outside(function: Function) -> Function:
    def deviating(p: Any, table: Any, /, *, offset: int = 0, clip: bool = False) -> Any:
        found, rows = function(p, table, offset=offset, clip=clip), np.asarray(p + offset)
        return np.where(((rows >= 0) & (rows < len(table)))[..., None], found, 0.0)

    return deviating


DEVIATIONS = (
    Deviation("sin-cos-exchanged", "sines and cosines are exchanged", {"sinusoidal": after(_pairs_swapped)}, "",
              "flashinfer#3819, diffusers#1369"),
    Deviation("sinusoid-halves-exchanged", "the half with sines and the half with cosines are exchanged",
              {"sinusoidal": after(_halves_swapped)}, "", "flashinfer#3819"),
    Deviation("sinusoid-interleaved", "sines and cosines are always interleaved",
              {"sinusoidal": option(layout=always("interleaved"))}, "", "multidim-positional-encoding#20"),
    Deviation("sinusoid-concatenated", "sines always come first, then cosines",
              {"sinusoidal": option(layout=always("sin_cos"))}, "", "tensor2tensor#1423"),
    Deviation("sinusoid-cos-exponent", "the cosine of a pair has the exponent (2i + 1)/d", {"sinusoidal": _cos_exponent},
              "The code lacks 2 * (i // 2).", "the TensorFlow tutorial's slip"),
    Deviation("endpoint-always", "the exponent is always i/(d/2 - 1)",
              {"sinusoidal": lambda f: lambda p, dim, /, **o: f(p, dim, **(o | {"endpoint": dim > 3}))}, "", "hojonathanho/diffusion#15"),
    Deviation("endpoint-never", "the exponent is always 2i/d",
              {"sinusoidal": lambda f: lambda p, dim, /, **o: f(p, dim, **(o | {"endpoint": False}))}),
    Deviation("sinusoid-base-10000", "the base is always 10000",
              {"sinusoidal": lambda f: lambda p, dim, /, **o: f(p, dim, **(o | {"base": 10000.0}))}, "", "croco#44"),
    Deviation("odd-as-zeros", "an odd width always gets a column of zeros", {"sinusoidal": option(odd=always("zeros"))}),
    Deviation("odd-truncated", "an odd width is always cut from the next even one",
              {"sinusoidal": option(odd=always("truncated"))}),
    Deviation("odd-extra-sine", "an odd width always keeps its own exponents and has one more sine",
              {"sinusoidal": option(odd=always("extra_sine"))}),
    Deviation("odd-zero-first", "the column of zeros is the first", {"sinusoidal": after(_zero_first)}, "Pad after the last column."),
    Deviation("sinusoid-unscaled", "the result is not scaled", {"sinusoidal": option(scale=always(1.0))}),
    Deviation("sinusoid-angle-scaled", "the scale multiplies positions, not the result", {"sinusoidal": _angle_scaled},
              "Multiply sines and cosines, not the positions."),
    Deviation("sinusoid-bfloat16", "the table is held in bfloat16", {"sinusoidal": after(lambda t, *a, **o: narrowed("bfloat16")(t))}, "",
              "keras-hub's compute_dtype"),
    Deviation("offset-ignored", "the offset into the table is ignored",
              {"learned": lambda f: lambda p, t, /, *, offset=0, **o: f(p, t, **o)}, "", "transformers#1761, sentence-transformers#3879"),
    Deviation("offset-plus-1", "each row is the one after the right one", {"learned": lambda f: lambda p, t, /, **o: f(
        p, np.concatenate([t[1:], t[-1:]]), **o)}, "", "lightseq#144"),
    Deviation("clip-wraps", "rows outside the table wrap around to its other end", {"learned": _outside(
        lambda rows, count: rows % count)}),
    Deviation("clip-zeros", "positions outside the table get zeros", {"learned": _zeros_outside}, "", "tinygrad#5873"),
    Deviation("clip-before-offset", "positions are clipped before the offset is added", {"learned": lambda f: lambda p, t, /, *,
        offset=0, clip=False: f(np.maximum(p, 0) if clip else p, t, offset=offset, clip=clip)}),
    Deviation("table-through-bfloat16", "the learned table is held in bfloat16", {"learned": argument(1, narrowed("bfloat16")),
              "t5_rows": argument(0, narrowed("bfloat16"))}),
    Deviation("rows-arange", "rows 0, 1, 2, ... are always read, without looking at positions", {"learned": argument(
        0, lambda p: np.broadcast_to(np.arange(p.shape[-1]), p.shape) if p.ndim else 0 * p)}, "", "keras-hub#1544"),
)  # fmt: skip
