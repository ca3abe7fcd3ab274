"""The second pass takes the keys of the first, which are turned already."""

import numpy as np

DEFECT = "keys turned in the second pass too"
NAMES = ("rerope-key-turned",)


def turned(x, p, base, layout):
    d = x.shape[-1]
    angle = p[..., None] * base ** (-np.arange(0, d, 2) / d)
    cos, sin = np.cos(angle), np.sin(angle)
    if layout == "half":
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = [a * cos - b * sin, b * cos + a * sin]
    return np.concatenate(pairs, axis=-1) if layout == "interleaved_to_half" else np.stack(pairs, axis=-1).reshape(x.shape)


def rerope(q, k, q_positions, k_positions, /, *, window, layout, base):
    keys = turned(k, k_positions, base, layout)
    keys = np.repeat(keys, q.shape[-3] // k.shape[-3], axis=-3) if q.ndim > 2 else keys
    near, far = (turned(q, p, base, layout) @ np.swapaxes(keys, -1, -2) for p in (q_positions, 0 * q_positions + window))
    apart = q_positions[..., :, None] - k_positions[..., None, :]
    return np.where(np.abs(apart) < window, near, far).astype(np.float32)
