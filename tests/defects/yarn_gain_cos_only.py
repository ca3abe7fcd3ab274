"""The attention factor multiplies cos and not sin: the rotation becomes an ellipse. Imagined."""

import torch

backend = "torch"
DEFECT = "attention factor on cos only"
NAMES = ("factor-on-cos-only",)


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=torch.float32):
    freqs = positions.float().unsqueeze(-1) * inv_freq.float()
    return (freqs.cos() * attention_factor).to(dtype), freqs.sin().to(dtype)
