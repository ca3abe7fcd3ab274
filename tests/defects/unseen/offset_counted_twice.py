"""The cache's offset is part of the positions and added once more; mlx-node #33 and mlx-lm #1699."""

import torch

backend = "torch"
DEFECT = "the first position of a row is added to all of them"
NAMES = ()


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    d = x.shape[-1]
    if positions.ndim:
        positions = positions + positions[..., :1]
    inv_freq = base ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = positions.double().unsqueeze(-1) * inv_freq
    cos, sin = (torch.cat((t, t), -1).float() for t in (angle.cos(), angle.sin()))
    x1, x2 = x.chunk(2, -1)
    return x * cos + torch.cat((-x2, x1), -1) * sin
