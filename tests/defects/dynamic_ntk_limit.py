"""The table is reset only below the original length, not at it; transformers 5.23 (`seq_len < original`)."""

import numpy as np

DEFECT = "dynamic NTK not reset at exactly the original length"
NAMES = ("dynamic-stale",)


class RotaryEmbedding:
    cached = {}  # noqa: RUF012

    def __call__(self, dim, base, scaling, length):
        original, key = scaling.original_length, (dim, base, scaling)
        if length > self.cached.get(key, original) or length < original:
            self.cached[key] = max(length, original)
        grow = scaling.factor * self.cached.get(key, original) / original - (scaling.factor - 1)
        return base * grow ** (dim / (dim - 2))


dynamic_base = RotaryEmbedding()


def rope(x, positions, /, *, layout, base, scaling=None, length=None):
    if layout != "half" or type(scaling).__name__ not in ("NoneType", "DynamicNTK"):
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    if scaling is not None:
        base = dynamic_base(x.shape[-1], base, scaling, length)
    angle = positions[..., None].astype(np.float32) / base ** (np.arange(n, dtype=np.float32) / n)
    cos, sin = np.cos(angle), np.sin(angle)
    return np.concatenate([x[..., :n] * cos - x[..., n:] * sin, x[..., n:] * cos + x[..., :n] * sin], axis=-1)
