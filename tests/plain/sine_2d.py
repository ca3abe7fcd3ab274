"""
As DETR computes it (facebookresearch/detr, commit 11c5d51): models/position_encoding.py, lines 33-49; with an offset as in
fundamentalvision/Deformable-DETR (commit 48092c5), the same file, lines 46-47.
"""

import math

import torch

backend = "torch"
dtypes = ("float32", "bfloat16")


def sine_2d(mask, dim, /, *, normalize, centered, base=10000.0, scale=2 * math.pi, eps=1e-6, dtype=None):
    features = dim // 2
    y_embed = mask.cumsum(-2, dtype=torch.float32)
    x_embed = mask.cumsum(-1, dtype=torch.float32)
    if normalize:
        offset = 0.5 if centered else 0.0
        y_embed = (y_embed - offset) / (y_embed[..., -1:, :] + eps) * scale
        x_embed = (x_embed - offset) / (x_embed[..., -1:] + eps) * scale
    dim_t = torch.arange(features, dtype=torch.float32)
    dim_t = base ** (2 * torch.div(dim_t, 2, rounding_mode="trunc") / features)
    parts = []
    for embed in (y_embed, x_embed):
        pos = embed[..., None] / dim_t
        parts.append(torch.stack((pos[..., 0::2].sin(), pos[..., 1::2].cos()), dim=-1).flatten(-2))
    return torch.cat(parts, dim=-1).to(dtype)
