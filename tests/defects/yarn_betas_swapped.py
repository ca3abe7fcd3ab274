"""beta_fast and beta_slow change places. Imagined: a call with positional arguments."""

import math

import numpy as np

DEFECT = "yarn betas swapped"
NAMES = ("yarn-betas-exchanged",)


def rope_frequencies(dim, /, *, base, scaling=None):
    pos_freqs = base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    if scaling is None:
        return 1.0 / pos_freqs, 1.0
    if type(scaling).__name__ != "YaRN" or scaling.mscale is not None:
        raise NotImplementedError(scaling)
    length, beta_slow, beta_fast = scaling.original_length, scaling.beta_fast, scaling.beta_slow
    low, high = (dim * math.log(length / (b * 2 * math.pi)) / (2 * math.log(base)) for b in (beta_fast, beta_slow))
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / (high - low), 0, 1)
    factor = scaling.attention_factor
    if factor is None:
        factor = 0.1 * math.log(scaling.factor) + 1 if scaling.factor > 1 else 1.0
    return (ramp / (scaling.factor * pos_freqs) + (1 - ramp) / pos_freqs).astype(np.float32), factor
