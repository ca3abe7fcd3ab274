"""`model.to(bfloat16)` reaches the position ids and the frequency buffer; transformers #25681 and #29285."""

import torch

backend = "torch"
DEFECT = "positions and frequencies held in bfloat16, the product in float32"
NAMES = (("positions-bfloat16", "inv-freq-bfloat16"),)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    d = rotary_dim or x.shape[-1]
    inv_freq = (1.0 / (base ** (torch.arange(0, d, 2, dtype=torch.float32) / d))).to(torch.bfloat16)
    angle = positions.to(torch.bfloat16).float()[..., None] * inv_freq.float()
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., :d:2], x[..., 1:d:2]
    turned = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
    return torch.cat((turned, x[..., d:]), dim=-1)
