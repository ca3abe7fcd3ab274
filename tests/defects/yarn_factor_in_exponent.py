"""The interpolated frequencies are (s*b)**(-2i/d), the factor inside the exponent; apache/tvm #18576."""

import math

import numpy as np

DEFECT = "yarn factor inside the exponent"
NAMES = ("yarn-factor-in-exponent",)


def rope_frequencies(dim, /, *, base, scaling=None):
    exponent = np.arange(0, dim, 2, dtype=np.float32) / dim
    if scaling is None:
        return 1.0 / base**exponent, 1.0
    if type(scaling).__name__ != "YaRN" or scaling.mscale is not None:
        raise NotImplementedError(scaling)
    low, high = (
        dim * math.log(scaling.original_length / (beta * 2 * math.pi)) / (2 * math.log(base))
        for beta in (scaling.beta_fast, scaling.beta_slow)
    )
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    high = high + 0.001 if low == high else high
    ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / (high - low), 0, 1)
    inter, extra = 1.0 / (scaling.factor * base) ** exponent, 1.0 / base**exponent
    factor = scaling.attention_factor
    if factor is None:
        factor = 0.1 * math.log(scaling.factor) + 1 if scaling.factor > 1 else 1.0
    return (inter * ramp + extra * (1 - ramp)).astype(np.float32), factor
