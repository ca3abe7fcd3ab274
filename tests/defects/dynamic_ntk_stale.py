"""Dynamic NTK keeps the base of the longest call so far; transformers #25308 and #27226 (short prompt after long)."""

import numpy as np

DEFECT = "dynamic NTK remembers the longest call"
NAMES = ("dynamic-never-reset",)

longest_seen = {}


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    if scaling is not None:
        if type(scaling).__name__ != "DynamicNTK":
            raise NotImplementedError(scaling)
        key = (dim, base, scaling)
        longest_seen[key] = max(longest_seen.get(key, scaling.original_length), length)
        grow = scaling.factor * longest_seen[key] / scaling.original_length - (scaling.factor - 1)
        base = base * grow ** (dim / (dim - 2))
    return 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim), 1.0
