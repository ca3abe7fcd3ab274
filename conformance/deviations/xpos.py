"""Deviations of xPos."""

from typing import Any

import numpy as np

import posref

from .compose import Deviation, Function, Real, Wrap, after, always, narrowed, option

FLIPPED = {"query": "key", "key": "query"}


def _powers(change: Any) -> dict[str, Wrap]:
    """Return a wrap that forms scales anew: `change` takes pairs, (p - c) / S and gamma, and returns the scales of queries."""

    def wrap(function: Function) -> Function:
        def deviating(
            p: Real, dim: int, /, *, role: str, centre: int, scale_base: float = 512.0, gamma: float = 0.4, **rest: Any
        ) -> Real:
            powers = (np.asarray(p, dtype=np.float64) - centre)[..., None] / scale_base
            return np.asarray(change(2 * np.arange(dim // 2) / dim, powers, gamma) ** (1 if role == "query" else -1))

        return deviating

    return {"xpos_scales": wrap}


def _zeta(pairs: Real, gamma: float) -> Real:
    return (pairs + gamma) / (1 + gamma)


def _middle(function: Function) -> Function:
    """The centre is the middle of the tokens of a call, which moves when keys are cached."""

    def deviating(p: Real, dim: int, /, *, centre: int, **rest: Any) -> Real:
        return function(p, dim, centre=np.shape(p)[-1] // 2 if np.ndim(p) else 0, **rest)

    return deviating


def _on_cosine(function: Function) -> Function:
    """The scale multiplies the cosine and not the sine."""

    def deviating(x: Real, p: Any, /, *, role: Any, layout: Any, base: float, rotary_dim: Any = None, **decay: Any) -> Real:
        dim = rotary_dim or x.shape[-1]
        cos, sin = posref.rope_table(p, posref.rope_frequencies(dim, base=base)[0], dtype=np.float64)
        scales = posref.xpos_scales(p, dim, role=role, dtype=np.float64, **decay)
        return np.asarray(posref.apply_rope(np.asarray(x, dtype=np.float64), cos * scales, sin, layout=layout))

    return deviating


DEVIATIONS = (
    Deviation("xpos-roles-exchanged", "the scales of queries and keys are exchanged",
              {"xpos_scales": option(role=FLIPPED.__getitem__)}, "Query scales fall with the position, key scales grow."),
    Deviation("xpos-keys-as-queries", "keys are scaled like queries", {"xpos_scales": option(role=always("query"))}),
    Deviation("xpos-queries-as-keys", "queries are scaled like keys", {"xpos_scales": option(role=always("key"))}),
    Deviation("xpos-unscaled", "nothing is scaled: the rotation of RoPE alone",
              {"xpos_scales": after(lambda out, *a, **o: np.ones_like(out))}),
    Deviation("xpos-scale-on-cos", "the cosine is scaled and the sine is not", {"xpos": _on_cosine}),
    Deviation("xpos-centre-0", "scales are always 1 at position 0", {"xpos_scales": option(centre=always(0))}),
    Deviation("xpos-centre-plus-1", "the centre is one position too large", {"xpos_scales": option(centre=lambda c: c + 1)},
              "The middle of an odd number of tokens is rounded up.", "the convention of torchscale"),
    Deviation("xpos-centre-of-call", "the centre is the middle of the call's tokens", {"xpos_scales": _middle},
              "Cached keys were scaled with another centre.", "rotary-embedding-torch 0.9.1"),
    Deviation("xpos-base-512", "the scale's base is always 512", {"xpos_scales": option(scale_base=always(512.0))}),
    Deviation("xpos-gamma-0.4", "gamma is always 0.4", {"xpos_scales": option(gamma=always(0.4))}),
    Deviation("xpos-exponent-half", "the scale of a pair uses i/d rather than 2i/d",
              _powers(lambda pairs, powers, gamma: _zeta(pairs / 2, gamma) ** powers)),
    Deviation("xpos-not-normalised", "2i/d + gamma is not divided by 1 + gamma",
              _powers(lambda pairs, powers, gamma: (pairs + gamma) ** powers)),
    Deviation("xpos-powers-bfloat16", "the powers (p - c) / S are held in bfloat16",
              _powers(lambda pairs, powers, gamma: _zeta(pairs, gamma) ** narrowed("bfloat16")(powers)), "",
              "rotary-embedding-torch 0.9.1"),
    Deviation("xpos-scales-bfloat16", "scales are held in bfloat16",
              {"xpos_scales": after(lambda out, *a, **o: narrowed("bfloat16")(out))}, "", "rotary-embedding-torch 0.9.1"),
    Deviation("xpos-scales-float16", "scales are held in float16",
              {"xpos_scales": after(lambda out, *a, **o: narrowed("float16")(out))}),
)  # fmt: skip
