"""Adjacent pairs are rotated and then concatenated, not interleaved again; vllm-project/vllm-metal #44."""

import numpy as np

DEFECT = "reads interleaved, writes halves"
NAMES = ("writes-halves",)


def apply_rope(x, cos, sin, /, *, layout, inverse=False):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    d = 2 * cos.shape[-1]
    if inverse:
        sin = -sin
    even, odd = x[..., 0:d:2], x[..., 1:d:2]
    return np.concatenate([even * cos - odd * sin, odd * cos + even * sin, x[..., d:]], axis=-1)
