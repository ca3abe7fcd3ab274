"""The exponents divide by the head size, not by rotary_dim; neuronx-distributed-inference #106 in reverse."""

import numpy as np

DEFECT = "exponent over head size"
NAMES = ("exponent-over-head-size",)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "half":
        raise NotImplementedError(layout)
    head_dim = x.shape[-1]
    d = rotary_dim or head_dim
    inv_freq = 1.0 / (base ** (np.arange(0, d, 2, dtype=np.float32) / head_dim))
    angle = positions[..., None].astype(np.float32) * inv_freq
    q_rot, q_pass = x[..., :d], x[..., d:]
    cos, sin = np.tile(np.cos(angle), 2), np.tile(np.sin(angle), 2)
    turned = np.concatenate([-q_rot[..., d // 2 :], q_rot[..., : d // 2]], axis=-1)
    return np.concatenate([q_rot * cos + turned * sin, q_pass], axis=-1)
