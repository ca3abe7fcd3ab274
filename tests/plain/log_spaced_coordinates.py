"""As transformers 5.23.0 computes them for Swin v2: models/swinv2/modeling_swinv2.py, lines 468-480; without a window as timm
1.0.31 in mode "cr": timm/layers/pos_embed_rel.py, lines 414-417."""

import math

import torch

backend = "torch"


def log_spaced_coordinates(offsets, /, *, window, dtype=None):
    real = offsets.dtype if offsets.is_floating_point() else torch.get_default_dtype()
    coords = offsets.to(dtype=torch.float64 if dtype == torch.float64 or real == torch.float64 else torch.float32)
    if window is None:
        return (torch.sign(coords) * torch.log(1.0 + coords.abs())).to(dtype or real)
    if window > 1:
        coords = coords / (window - 1)
    coords = coords * 8
    return (torch.sign(coords) * torch.log2(torch.abs(coords) + 1.0) / math.log2(8)).to(dtype or real)
