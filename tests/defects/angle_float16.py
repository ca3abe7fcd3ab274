"""The angle p*f is formed in half precision; MLX #2791 (the fallback computed angles in the input dtype)."""

import numpy as np

DEFECT = "angles in float16"
NAMES = ("angles-float16",)


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    with np.errstate(over="ignore"):
        freqs = positions.astype(np.float32)[..., None] * inv_freq.astype(np.float32)
        freqs = freqs.astype(np.float16).astype(np.float32)
    dtype = dtype or np.float32
    return (np.cos(freqs) * attention_factor).astype(dtype), (np.sin(freqs) * attention_factor).astype(dtype)
