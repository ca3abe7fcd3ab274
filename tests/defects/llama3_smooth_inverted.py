"""Llama 3's smooth factor weighs the wrong end of the ramp. Imagined: a slip in copying Meta's `apply_scaling`."""

import math

import numpy as np

DEFECT = "llama3 smooth inverted"
NAMES = ("llama3-ramp-inverted",)


def rope_frequencies(dim, /, *, base, scaling=None):
    freqs = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
    if scaling is None:
        return freqs, 1.0
    if type(scaling).__name__ != "Llama3":
        raise NotImplementedError(scaling)
    low, high, old = scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_length
    new_freqs = []
    for freq in freqs:
        wavelen = 2 * math.pi / freq
        if wavelen < old / high:
            new_freqs.append(freq)
        elif wavelen > old / low:
            new_freqs.append(freq / scaling.factor)
        else:
            smooth = (old / wavelen - low) / (high - low)
            new_freqs.append(smooth * freq / scaling.factor + (1 - smooth) * freq)
    return np.asarray(new_freqs, dtype=np.float32), 1.0
