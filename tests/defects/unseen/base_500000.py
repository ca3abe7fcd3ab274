"""Llama 3's base in every model: a constant that was right where it was written."""

import torch

backend = "torch"
DEFECT = "base fixed at 500000"
NAMES = ()


def rope(x, positions, /, *, layout, base):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    d = x.shape[-1]
    freqs = 1.0 / (500000.0 ** (torch.arange(0, d, 2).double() / d))
    angle = (positions.double().unsqueeze(-1) * freqs).float()
    pairs = torch.view_as_complex(x.unflatten(-1, (d // 2, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)
