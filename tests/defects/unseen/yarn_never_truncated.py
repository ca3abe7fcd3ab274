"""The correction range stays fractional whatever `truncate` says; gpt-oss's habit put into a general module."""

import math

import torch

backend = "torch"
DEFECT = "truncate=True is ignored"
NAMES = ("yarn-not-truncated",)


def correction(turns, dim, base, length):
    return dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    freqs = base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if scaling is None:
        return (1 / freqs).float(), 1.0
    if type(scaling).__name__ != "YaRN" or scaling.attention_factor is not None or scaling.mscale is not None:
        raise NotImplementedError(scaling)
    s = scaling.factor
    low = max(correction(scaling.beta_fast, dim, base, scaling.original_length), 0)
    high = min(correction(scaling.beta_slow, dim, base, scaling.original_length), dim - 1)
    ramp = ((torch.arange(dim // 2) - low) / max(high - low, 0.001)).clamp(0, 1)
    inv_freq = (1 / (s * freqs)) * ramp + (1 / freqs) * (1 - ramp)
    return inv_freq.float(), 0.1 * math.log(s) + 1.0 if s > 1 else 1.0
