"""A bfloat16 frequency buffer (tt-metal #54516), and a half overwritten before it is read (transformers #11725)."""

import torch

backend = "torch"
DEFECT = "frequencies held in bfloat16, and the second half computed from the rotated first"
NAMES = (("inv-freq-bfloat16", "in-place-update"),)


def rope_frequencies(dim, /, *, base):
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    return inv_freq.bfloat16().float(), 1.0


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    angle = positions.float().unsqueeze(-1) * inv_freq.float()
    return angle.cos() * attention_factor, angle.sin() * attention_factor


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    n = cos.shape[-1]
    out = x.clone()
    out[..., :n] = out[..., :n] * cos - x[..., n : 2 * n] * sin
    out[..., n : 2 * n] = x[..., n : 2 * n] * cos + out[..., :n] * sin
    return out


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    inv_freq, factor = rope_frequencies(rotary_dim or x.shape[-1], base=base)
    return apply_rope(x, *rope_table(positions, inv_freq, attention_factor=factor), layout=layout)
