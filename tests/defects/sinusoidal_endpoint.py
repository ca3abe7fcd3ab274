"""The exponent always divides by d/2 - 1, tensor2tensor's form, in place of the paper's; hojonathanho/diffusion #15."""

import math

import torch

backend = "torch"
DEFECT = "endpoint exponent i/(d/2-1) for all"
NAMES = ("endpoint-always",)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=torch.float32):
    if layout == "interleaved":
        raise NotImplementedError(layout)
    half_dim = dim // 2
    emb = math.log(base) / max(half_dim - 1, 1)
    emb = torch.exp(torch.arange(half_dim, dtype=torch.float32) * -emb)
    emb = positions.float().unsqueeze(-1) * emb
    pair = (torch.sin(emb), torch.cos(emb)) if layout == "sin_cos" else (torch.cos(emb), torch.sin(emb))
    return torch.cat(pair, dim=-1).to(dtype or torch.float32)
