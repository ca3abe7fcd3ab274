"""YaRN's upper correction dimension is limited to d/2 - 1; keras-hub #2981 and minimind #602."""

import math

import numpy as np

DEFECT = "correction range clamped to d/2 - 1"
NAMES = ("yarn-high-half",)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    half = dim // 2
    plain = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float64) / dim)
    if scaling is None:
        return plain.astype(np.float32), 1.0
    if type(scaling).__name__ != "YaRN":
        raise NotImplementedError(scaling)
    low, high = (
        dim * math.log(scaling.original_length / (2 * math.pi * turns)) / (2 * math.log(base))
        for turns in (scaling.beta_fast, scaling.beta_slow)
    )
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, half - 1)
    ramp = np.clip((np.arange(half) - low) / (high - low if high != low else 0.001), 0, 1)

    def g(m):
        return 1.0 if scaling.factor <= 1 else 0.1 * m * math.log(scaling.factor) + 1.0

    factor = scaling.attention_factor
    if factor is None:
        both = scaling.mscale is not None and scaling.mscale_all_dim is not None
        factor = g(scaling.mscale) / g(scaling.mscale_all_dim) if both else g(1)
    return (plain / scaling.factor * ramp + plain * (1 - ramp)).astype(np.float32), float(factor)
