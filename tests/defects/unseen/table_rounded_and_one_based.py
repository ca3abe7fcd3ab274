"""Positions begin at 1 (vLLM #945's sibling), and the table is kept in float16 (sglang #3134)."""

import torch

backend = "torch"
DEFECT = "positions one too large, and a cos/sin table in float16"
NAMES = (("positions-plus-1", "table-float16"),)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "half":
        raise NotImplementedError(layout)
    d = rotary_dim or x.shape[-1]
    inv_freq = 1.0 / base ** (torch.arange(0, d, 2, dtype=torch.float32) / d)
    angle = (positions.float() + 1)[..., None] * inv_freq
    cos, sin = angle.cos().half().float(), angle.sin().half().float()
    a, b = x[..., : d // 2], x[..., d // 2 : d]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., d:]], dim=-1)
