"""As diffusers 0.42.1 computes timesteps: models/embeddings.py, lines 56-78."""

import math

import torch

backend = "torch"


def timestep(timesteps, dim, /, *, flip, freq_shift, scale, base=10000.0, dtype=None):
    half_dim = dim // 2
    exponent = -math.log(base) * torch.arange(start=0, end=half_dim, dtype=torch.float32)
    emb = torch.exp(exponent / (half_dim - freq_shift))
    emb = scale * (timesteps[..., None].float() * emb)
    emb = torch.cat([torch.sin(emb), torch.cos(emb)], dim=-1)
    if flip:
        emb = torch.cat([emb[..., half_dim:], emb[..., :half_dim]], dim=-1)
    if dim % 2 == 1:
        emb = torch.nn.functional.pad(emb, (0, 1))
    return emb.to(dtype)
