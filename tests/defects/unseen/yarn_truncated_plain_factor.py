"""Always truncated (mlx-lm #1507), and the factor ln(s)/10 + 1 whatever mscale says (vLLM #56446)."""

import math

import numpy as np

DEFECT = "truncate=False ignored, and mscale ignored"
NAMES = (("yarn-truncated", "yarn-factor-plain"),)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    inv_freq = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
    if scaling is None:
        return inv_freq, 1.0
    if type(scaling).__name__ != "YaRN":
        raise NotImplementedError(scaling)

    def where(beta):
        return dim * math.log(scaling.original_length / (beta * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(where(scaling.beta_fast)), 0), min(math.ceil(where(scaling.beta_slow)), dim - 1)
    ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / max(high - low, 0.001), 0, 1)
    mixed = inv_freq / np.float32(scaling.factor) * ramp + inv_freq * (1 - ramp)
    return mixed.astype(np.float32), 1.0 if scaling.factor <= 1 else 0.1 * math.log(scaling.factor) + 1.0


def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None):
    if layout != "half":
        raise NotImplementedError(layout)
    d = rotary_dim or x.shape[-1]
    inv_freq, factor = rope_frequencies(d, base=base, scaling=scaling, length=length)
    angle = positions[..., None].astype(np.float32) * inv_freq
    cos, sin = np.cos(angle) * np.float32(factor), np.sin(angle) * np.float32(factor)
    a, b = x[..., : d // 2], x[..., d // 2 : d]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., d:]], axis=-1)
