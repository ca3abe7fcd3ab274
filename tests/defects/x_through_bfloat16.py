"""x passes through bfloat16 and the result is float32 again: a kernel with a forced dtype, sglang #3134's kind."""

import numpy as np

DEFECT = "x rounded to bfloat16"
NAMES = ("x-through-bfloat16",)


def bf16(a):
    bits = np.ascontiguousarray(a).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16 << 16).view(np.float32)


def apply_rope(x, cos, sin, /, *, layout):
    d = 2 * cos.shape[-1]
    x = bf16(x)
    if layout == "interleaved":
        a, b = x[..., 0:d:2], x[..., 1:d:2]
        turned = np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(*x.shape[:-1], d)
    elif layout == "half":
        a, b = x[..., : d // 2], x[..., d // 2 : d]
        turned = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    else:
        raise NotImplementedError(layout)
    return np.concatenate([turned, x[..., d:]], axis=-1)
