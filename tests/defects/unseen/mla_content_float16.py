"""The product of the content channels is stored in float16 before the rotary part is added; two kernels, one workspace.

Should be said: unexplained, and how far off: rounding of the size of float16. Not a name of a rounded input.
"""

import numpy as np

DEFECT = "content logits rounded to float16 before the sum"
NAMES = ()


def rotated(x, cos, sin, layout):
    r = 2 * cos.shape[-1]
    if layout == "half":
        u, v = x[..., : r // 2], x[..., r // 2 : r]
    elif layout == "interleaved":
        u, v = x[..., :r:2], x[..., 1:r:2]
    else:
        raise NotImplementedError(layout)
    turned = u * cos - v * sin, v * cos + u * sin
    turned = np.concatenate(turned, axis=-1) if layout == "half" else np.stack(turned, axis=-1).reshape(*x.shape[:-1], r)
    return np.concatenate([turned, x[..., r:]], axis=-1).astype(x.dtype)


def turned(x, positions, layout, base):
    angle = positions[..., None] * float(base) ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
    return rotated(x.astype(np.float64), np.cos(angle), np.sin(angle), layout)


def mla_logits(q_nope, q_rope, k_nope, k_rope, q_positions, k_positions, /, *, layout, base, scale=None):
    of_heads = q_positions if q_positions.ndim < 2 else q_positions[..., None, :]
    q, k = turned(q_rope, of_heads, layout, base), turned(k_rope, k_positions, layout, base)
    content = (q_nope.astype(np.float64) @ np.swapaxes(k_nope, -1, -2)).astype(np.float16).astype(np.float64)
    scale = (q_nope.shape[-1] + q_rope.shape[-1]) ** -0.5 if scale is None else scale
    return ((content + q @ np.swapaxes(k, -1, -2)[..., None, :, :]) * scale).astype(q_nope.dtype)
