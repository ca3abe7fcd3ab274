"""
Sines and cosines as diffusers (commit 58eb52c) and others compute them, odd widths by the rules of three libraries.

diffusers' frequencies and column of zeros: src/diffusers/models/embeddings.py, lines 56-78. positional-encodings 6.0.3 is
interleaved, and cuts what is too much: positional_encodings/torch_encodings.py, lines 6-47. transformers 5.23.0 adds a sine:
models/roformer/modeling_roformer.py, lines 58-68. x-transformers 2.31.10 has the scale: x_transformers.py, lines 444-472.
"""

import math

import torch

backend = "torch"


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, odd="refused", scale=1.0, dtype=None):
    if dim % 2 and odd == "extra_sine":
        table = _roformer(positions, dim, layout, base, endpoint)
    else:
        table = _even(positions, dim - dim % 2 if odd == "zeros" else dim + dim % 2, layout, base, endpoint)
    table = torch.nn.functional.pad(table, (0, max(dim - table.shape[-1], 0)))[..., :dim]
    return (table * scale).to(dtype)


def _even(positions, dim, layout, base, endpoint):
    half = dim // 2
    exponent = -math.log(base) * torch.arange(half, dtype=torch.float32)
    exponent = exponent / (half - (1 if endpoint else 0))
    angle = positions[..., None].float() * torch.exp(exponent)
    if layout == "interleaved":
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2, -1)
    table = torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)
    return torch.cat([table[..., half:], table[..., :half]], dim=-1) if layout == "cos_sin" else table


def _roformer(positions, dim, layout, base, endpoint):
    lanes = torch.arange(dim, dtype=torch.float64)
    angle = positions[..., None].double() / base ** (2 * (lanes // 2) / (dim - 1 if endpoint else dim))
    if layout == "interleaved":
        return torch.where(lanes % 2 == 0, torch.sin(angle), torch.cos(angle)).float()
    sin, cos = torch.sin(angle[..., 0::2]).float(), torch.cos(angle[..., 1::2]).float()
    return torch.cat([cos, sin] if layout == "cos_sin" else [sin, cos], dim=-1)
