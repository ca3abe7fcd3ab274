"""Half layout and base 10000 for every model: airllm #368 in a file that also knows one layout only."""

import torch

backend = "torch"
DEFECT = "layout and base hard-coded"
NAMES = (("layout-half", "base-10000"),)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    dim = rotary_dim or x.shape[-1]
    inv_freq = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
    freqs = positions.float()[..., None] * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    rot, rest = x[..., :dim], x[..., dim:]
    x1, x2 = rot.chunk(2, dim=-1)
    return torch.cat((rot * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin(), rest), dim=-1)
