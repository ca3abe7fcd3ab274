"""Positions are counted from the first one of the row: chunk-local ids in chunked prefill, transformers #43082."""

import numpy as np

DEFECT = "positions relative to the first of the chunk"
NAMES = ("positions-from-first",)


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    if positions.ndim:
        positions = positions - positions[..., :1]
    freqs = positions.astype(np.float32)[..., None] * inv_freq.astype(np.float32)
    dtype = dtype or np.float32
    return (np.cos(freqs) * attention_factor).astype(dtype), (np.sin(freqs) * attention_factor).astype(dtype)
