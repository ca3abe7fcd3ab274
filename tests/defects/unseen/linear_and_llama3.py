"""Two scalings, each wrong in its own way, in one function."""

import numpy as np

DEFECT = "Linear's factor ignored, and Llama 3's ramp inverted"
NAMES = (("linear-ignored", "llama3-bands-exchanged"),)


def plain(dim, base):
    return float(base) ** (-np.arange(0, dim, 2) / dim)


def llama3(f, s):
    turns = s.original_length * f / (2 * np.pi)
    width = s.high_freq_factor - s.low_freq_factor
    ramp = np.clip((turns - s.low_freq_factor) / width, 0, 1) if width > 0 else (turns >= s.low_freq_factor) * 1.0
    return f / s.factor * ramp + f * (1 - ramp)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    f = plain(dim, base)
    kind = type(scaling).__name__
    if kind not in ("NoneType", "Linear", "Llama3"):
        raise NotImplementedError(kind)
    return (llama3(f, scaling) if kind == "Llama3" else f), 1.0
