"""Positions are held in float16, exact up to 2048 only; `t` built with the dtype of an fp16 model, Megatron-LM #744."""

import numpy as np

DEFECT = "positions held in float16"
NAMES = ("positions-float16",)


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    t = positions.astype(np.float16)
    freqs = t.astype(np.float32)[..., None] * inv_freq.astype(np.float32)
    dtype = dtype or np.float32
    return (np.cos(freqs) * attention_factor).astype(dtype), (np.sin(freqs) * attention_factor).astype(dtype)
