"""As xPos's authors compute it (microsoft/torchscale, commit 4d1e0e8): torchscale/component/xpos_relative_position.py, lines
8-35 and 45-64, where gamma is always 0.4."""

import torch

backend = "torch"


def rotate_every_two(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def xpos(x, positions, /, *, role, layout, base, centre, scale_base=512.0):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    dim = x.shape[-1]
    scale = (torch.arange(0, dim, 2) + 0.4 * dim) / (1.4 * dim)
    scale = scale ** (positions - centre).to(scale).div(scale_base)[..., None]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim // 2) / (dim // 2)))
    angle = positions[..., None].to(torch.float) * inv_freq
    if role == "key":
        scale = 1 / scale
    sin, cos = ((t * scale).repeat_interleave(2, dim=-1) for t in (torch.sin(angle), torch.cos(angle)))
    return (x * cos) + (rotate_every_two(x) * sin)
