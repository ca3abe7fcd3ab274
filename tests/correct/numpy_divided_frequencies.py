"""Linear scaling by dividing frequencies by the factor, as transformers writes it."""

import numpy as np


def rope_frequencies(dim, /, *, base, scaling=None):
    inv_freq = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim))
    if type(scaling).__name__ == "Linear":
        inv_freq /= np.float32(scaling.factor)
    elif scaling is not None:
        raise NotImplementedError(scaling)
    return inv_freq, 1.0


def rope(x, positions, /, *, layout, base, scaling=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    inv_freq, _ = rope_frequencies(x.shape[-1], base=base, scaling=scaling)
    angle = np.repeat(positions[..., None].astype(np.float32) * inv_freq, 2, axis=-1)
    turned = np.empty_like(x)
    turned[..., 0::2], turned[..., 1::2] = -x[..., 1::2], x[..., 0::2]
    return x * np.cos(angle) + turned * np.sin(angle)
