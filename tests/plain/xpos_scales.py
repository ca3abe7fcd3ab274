"""As xPos's authors compute them (microsoft/torchscale, commit 4d1e0e8): torchscale/component/xpos_relative_position.py, lines
45-47, 53 and 61-62, where gamma is always 0.4."""

import torch

backend = "torch"


def xpos_scales(positions, dim, /, *, role, centre, scale_base=512.0, dtype=None):
    scale = (torch.arange(0, dim, 2) + 0.4 * dim) / (1.4 * dim)
    scale = scale ** (positions - centre).to(scale).div(scale_base)[..., None]
    return (1 / scale if role == "key" else scale).to(dtype)
