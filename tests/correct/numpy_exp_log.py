"""Frequencies as exp(-(2i/d) ln b) in float32, as the Annotated Transformer writes them; RoPE and sinusoids."""

import math

import numpy as np


def div_term(dim, base):
    return np.exp(np.arange(0, dim, 2, dtype=np.float32) * np.float32(-(math.log(base) / dim)))


def rope_frequencies(dim, /, *, base):
    return div_term(dim, base), 1.0


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    d = x.shape[-1] if rotary_dim is None else rotary_dim
    theta = positions.astype(np.float32)[..., np.newaxis] * div_term(d, base)
    first, second = {
        "half": (slice(0, d // 2), slice(d // 2, d)),
        "interleaved": (slice(0, d, 2), slice(1, d, 2)),
    }.get(layout, (None, None))
    if first is None:
        raise NotImplementedError(layout)
    out = x.copy()
    out[..., first] = np.cos(theta) * x[..., first] - np.sin(theta) * x[..., second]
    out[..., second] = np.sin(theta) * x[..., first] + np.cos(theta) * x[..., second]
    return out


def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    pe = np.zeros((*positions.shape, dim), dtype=np.float32)
    position = positions[..., None].astype(np.float32)
    pe[..., 0::2] = np.sin(position * div_term(dim, base))
    pe[..., 1::2] = np.cos(position * div_term(dim, base))
    return pe.astype(dtype or np.float32)
