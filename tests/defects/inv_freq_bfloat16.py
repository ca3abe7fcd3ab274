"""The frequencies pass through bfloat16 and back; transformers #25681 (`model.to(bfloat16)` casts the buffer)."""

import numpy as np

DEFECT = "inv_freq rounded to bfloat16"
NAMES = ("inv-freq-bfloat16",)


def to_bfloat16(a):
    bits = np.asarray(a, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def rope_frequencies(dim, /, *, base):
    inv_freq = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    return to_bfloat16(inv_freq), 1.0
