"""The attention factor is applied on the NEOX path only; GaijinEntertainment/daScript #3479."""

import math

import numpy as np

DEFECT = "yarn attention factor dropped when interleaved"
NAMES = ("factor-half-only",)


def frequencies(dim, base, s):
    def corner(beta):
        at = dim * math.log(s.original_length / (beta * 2 * math.pi)) / (2 * math.log(base))
        return (math.floor(at) if beta == s.beta_fast else math.ceil(at)) if s.truncate else at

    low, high = max(corner(s.beta_fast), 0), min(corner(s.beta_slow), dim - 1)
    mix = np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0, 1).astype(np.float32)
    freq = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    return freq * (1 - mix) + freq / np.float32(s.factor) * mix


def rope(x, positions, /, *, layout, base, scaling=None):
    if type(scaling).__name__ != "YaRN" or scaling.mscale is not None or scaling.beta_fast == scaling.beta_slow:
        raise NotImplementedError(scaling)
    gain = scaling.attention_factor
    if gain is None:
        gain = 1 + 0.1 * math.log(max(scaling.factor, 1.0))
    n = x.shape[-1] // 2
    angle = positions[..., None].astype(np.float32) * frequencies(2 * n, base, scaling)
    c, s = np.cos(angle), np.sin(angle)
    if layout == "half":
        c, s = c * np.float32(gain), s * np.float32(gain)
        return np.concatenate([x[..., :n] * c - x[..., n:] * s, x[..., n:] * c + x[..., :n] * s], axis=-1)
    if layout == "interleaved":
        a, b = x[..., ::2], x[..., 1::2]
        return np.stack([a * c - b * s, b * c + a * s], axis=-1).reshape(x.shape)
    raise NotImplementedError(layout)
