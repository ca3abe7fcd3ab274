"""inverse=True rotates forward, and lanes beyond rotary_dim come back as zeros (labml #215's slice)."""

import numpy as np

DEFECT = "inverse ignored, and the tail zeroed"
NAMES = (("inverse-ignored", "tail-zeroed"),)


def apply_rope(x, cos, sin, /, *, layout, inverse=False):
    out = np.zeros_like(x)
    n = cos.shape[-1]
    if layout == "half":
        read = write = (slice(0, n), slice(n, 2 * n))
    else:
        read = write = (slice(0, 2 * n, 2), slice(1, 2 * n, 2))
    if layout == "interleaved_to_half":
        write = (slice(0, n), slice(n, 2 * n))
    a, b = x[..., read[0]], x[..., read[1]]
    out[..., write[0]], out[..., write[1]] = a * cos - b * sin, b * cos + a * sin
    return out
