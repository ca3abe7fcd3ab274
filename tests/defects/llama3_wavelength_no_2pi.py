"""The wavelength is 1/f and lacks the 2 pi, so the bands move. Imagined: a slip in copying Meta's `apply_scaling`."""

import numpy as np

DEFECT = "llama3 wavelength without 2 pi"
NAMES = ("llama3-no-2pi",)


def rope_frequencies(dim, /, *, base, scaling=None):
    inv_freq = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    if scaling is None:
        return inv_freq, 1.0
    if type(scaling).__name__ != "Llama3":
        raise NotImplementedError(scaling)
    wavelen = 1.0 / inv_freq
    smooth = scaling.original_length / wavelen - scaling.low_freq_factor
    smooth = np.clip(smooth / (scaling.high_freq_factor - scaling.low_freq_factor), 0, 1)
    return ((1 - smooth) * inv_freq / scaling.factor + smooth * inv_freq).astype(np.float32), 1.0
