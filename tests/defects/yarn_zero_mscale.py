"""A zero mscale is taken for a missing one (`if mscale and ...`): transformers' YaRN, and MLX #4098's falsy trap."""

import math

import numpy as np

DEFECT = "yarn mscale 0 treated as not given"
NAMES = ("yarn-mscale-zero",)


def get_mscale(scale, mscale=1.0):
    return 1.0 if scale <= 1 else 0.1 * mscale * math.log(scale) + 1.0


def rope_frequencies(dim, /, *, base, scaling=None):
    freq = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    if scaling is None:
        return freq, 1.0
    if type(scaling).__name__ != "YaRN":
        raise NotImplementedError(scaling)
    s, log_base = scaling, 2 * math.log(base)
    low = dim * math.log(s.original_length / (s.beta_fast * 2 * math.pi)) / log_base
    high = dim * math.log(s.original_length / (s.beta_slow * 2 * math.pi)) / log_base
    if s.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / max(high - low, 0.001), 0, 1)
    factor = s.attention_factor
    if factor is None and s.mscale and s.mscale_all_dim:
        factor = get_mscale(s.factor, s.mscale) / get_mscale(s.factor, s.mscale_all_dim)
    elif factor is None:
        factor = get_mscale(s.factor)
    return (freq / s.factor * ramp + freq * (1 - ramp)).astype(np.float32), factor
