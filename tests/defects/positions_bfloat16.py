"""Positions are held in bfloat16, so 257 becomes 256; transformers #29285 and the Baichuan2 position collision."""

import torch

backend = "torch"
DEFECT = "positions held in bfloat16"
NAMES = ("positions-bfloat16",)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    dim = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    t = positions.to(torch.bfloat16)
    freqs = t.float()[..., None] * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    x1, x2 = x.chunk(2, dim=-1)
    return x * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()
