"""Row 0's cos and sin serve every row of the batch; Liger-Kernel #477 (batch size > 1)."""

import torch

backend = "torch"
DEFECT = "row 0's positions for all rows"
NAMES = ("positions-first-row",)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    dim = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    freqs = positions[..., None].float() * inv_freq
    cos, sin = freqs.cos(), freqs.sin()
    if positions.ndim > 1:
        cos, sin = cos[:1], sin[:1]
    x1, x2 = x[..., : dim // 2], x[..., dim // 2 :]
    return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)
