"""YaRN's correction range is always rounded to integers, gpt-oss's `truncate: false` unread; apache/tvm #18576."""

import math

import numpy as np

DEFECT = "yarn truncate ignored"
NAMES = ("yarn-truncated",)


def yarn_find_correction_dim(num_rotations, dim, base, max_position_embeddings):
    return dim * math.log(max_position_embeddings / (num_rotations * 2 * math.pi)) / (2 * math.log(base))


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    freq = base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    if scaling is None:
        return 1.0 / freq, 1.0
    if type(scaling).__name__ != "YaRN" or scaling.mscale is not None:
        raise NotImplementedError(scaling)
    low = math.floor(yarn_find_correction_dim(scaling.beta_fast, dim, base, scaling.original_length))
    high = math.ceil(yarn_find_correction_dim(scaling.beta_slow, dim, base, scaling.original_length))
    low, high = max(low, 0), min(high, dim - 1)
    ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / max(high - low, 0.001), 0, 1)
    gain = scaling.attention_factor
    if gain is None:
        gain = 0.1 * math.log(scaling.factor) + 1 if scaling.factor > 1 else 1.0
    return (ramp / (scaling.factor * freq) + (1 - ramp) / freq).astype(np.float32), gain
