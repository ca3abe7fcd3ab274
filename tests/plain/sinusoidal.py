"""As diffusers (commit 58eb52c) computes timesteps: src/diffusers/models/embeddings.py, lines 56-73."""

import math

import torch

backend = "torch"


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    if layout == "interleaved":
        raise NotImplementedError(layout)
    half = dim // 2
    exponent = -math.log(base) * torch.arange(half, dtype=torch.float32)
    exponent = exponent / (half - (1 if endpoint else 0))
    angle = positions[..., None].float() * torch.exp(exponent)
    table = torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)
    if layout == "cos_sin":
        table = torch.cat([table[..., half:], table[..., :half]], dim=-1)
    return table.to(dtype)
