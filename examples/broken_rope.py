"""
A rotary embedding in NumPy: the first example, with one deliberate bug.

    posref check examples/broken_rope.py

Try to find the bug before you run the check. The code is short, and real models have been served with this bug. This file does
not import posref: an implementation is just a file with functions named like the operations.
"""

import numpy as np


def rope_frequencies(dim, /, *, base, scaling=None):
    """Return the angular frequency of each pair, in radians per token, and the factor on the table."""
    if scaling is not None:
        raise NotImplementedError(scaling)
    return base ** (-np.arange(0, dim, 2, dtype=np.float32) / dim), 1.0


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=np.float32):
    """Return cos and sin of position x frequency, each of shape (..., dim/2)."""
    steps = positions.astype(np.float16)
    angles = steps[..., None] * inv_freq.astype(np.float32)
    return (attention_factor * np.cos(angles)).astype(dtype), (attention_factor * np.sin(angles)).astype(dtype)


def apply_rope(x, cos, sin, /, *, layout):
    """Rotate every pair (x[i], x[i + d/2]) by its angle, where d is twice the width of the table; the rest is unchanged."""
    if layout != "half":
        raise NotImplementedError(layout)
    half = cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin, rest], axis=-1)


def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None):
    """Rotate the first `rotary_dim` channels of x (by default all) by its position."""
    inv_freq, gain = rope_frequencies(rotary_dim or x.shape[-1], base=base, scaling=scaling)
    cos, sin = rope_table(positions, inv_freq, attention_factor=gain, dtype=x.dtype)
    return apply_rope(x, cos, sin, layout=layout)
