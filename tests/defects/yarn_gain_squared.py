"""The attention factor enters the table twice, once from the config and once in the cache; sglang #33558."""

import numpy as np

DEFECT = "attention factor squared"
NAMES = ("factor-squared",)


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    freqs = positions[..., None].astype(np.float32) * inv_freq.astype(np.float32)
    emb = np.stack([np.cos(freqs), np.sin(freqs)]) * np.float32(attention_factor)
    cos, sin = emb * np.float32(attention_factor)
    return cos.astype(dtype or np.float32), sin.astype(dtype or np.float32)
