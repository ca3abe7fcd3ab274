"""
With the angles of diffusers 0.42.1: models/embeddings.py, lines 56-63.

No library has the matrix. It is that of arXiv:1706.03762, section 3.5, by sin(a + b) = sin a cos b + cos a sin b and
cos(a + b) = cos a cos b - sin a sin b.
"""

import math

import torch

backend = "torch"


def sinusoidal_shift(offsets, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    half_dim = dim // 2
    exponent = -math.log(base) * torch.arange(start=0, end=half_dim, dtype=torch.float32)
    emb = offsets[..., None].float() * torch.exp(exponent / (half_dim - (1 if endpoint else 0)))
    cos, sin = torch.diag_embed(torch.cos(emb)), torch.diag_embed(torch.sin(emb))
    if layout == "cos_sin":
        sin = -sin
    matrix = torch.cat([torch.cat([cos, sin], dim=-1), torch.cat([-sin, cos], dim=-1)], dim=-2)
    if layout == "interleaved":
        order = torch.arange(dim).reshape(2, half_dim).T.reshape(-1)
        matrix = matrix[..., order, :][..., order]
    return matrix.to(dtype)
