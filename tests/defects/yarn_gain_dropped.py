"""YaRN's attention factor is not applied to cos and sin; exllamav3 #259 (a factor of 1 where 0.1 ln s + 1 was)."""

import math

import numpy as np

DEFECT = "yarn attention factor dropped"
NAMES = ("yarn-factor-missing", "factor-dropped")


def correction(rotations, dim, base, length):
    return dim * math.log(length / (rotations * 2 * math.pi)) / (2 * math.log(base))


def rope(x, positions, /, *, layout, base, scaling=None):
    if layout != "half" or type(scaling).__name__ not in ("NoneType", "YaRN"):
        raise NotImplementedError(layout)
    dim = x.shape[-1]
    freqs = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    if scaling is not None:
        low = correction(scaling.beta_fast, dim, base, scaling.original_length)
        high = correction(scaling.beta_slow, dim, base, scaling.original_length)
        if scaling.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        keep = 1 - np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0, 1).astype(np.float32)
        freqs = freqs * keep + freqs / np.float32(scaling.factor) * (1 - keep)
    angle = positions[..., None].astype(np.float32) * freqs
    cos, sin = np.tile(np.cos(angle), 2), np.tile(np.sin(angle), 2)
    return x * cos + np.concatenate([-x[..., dim // 2 :], x[..., : dim // 2]], axis=-1) * sin
