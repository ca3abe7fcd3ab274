"""Distances saturate at 1023, the length of training. Imagined: a bias table of a fixed size, indexed with a clamp."""

import numpy as np

DEFECT = "distances beyond 1023 are clamped"
NAMES = ()


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    if form != "distance":
        raise NotImplementedError(form)
    p = 1 << (heads.bit_length() - 1)
    e = np.concatenate([np.arange(1, p + 1), np.arange(0.5, heads - p)]) / p
    far = np.minimum(np.abs(q_positions[..., :, None] - k_positions[..., None, :]), 1023)
    return (-(2.0 ** (-8 * e)).astype(np.float32)[:, None, None] * far[..., None, :, :].astype(np.float32)).astype(np.float32)
