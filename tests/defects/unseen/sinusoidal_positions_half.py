"""Positions take the compute dtype of a bfloat16 model before they meet the frequencies; InternLM #237's class."""

import math

import torch

backend = "torch"
DEFECT = "positions held in bfloat16"
NAMES = ("positions-bfloat16",)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    half = dim // 2
    scale = torch.exp(torch.arange(half, dtype=torch.float64) * -(math.log(base) / (half - 1 if endpoint else half))).float()
    angle = positions.to(torch.bfloat16).float().unsqueeze(-1) * scale
    sin, cos = angle.sin(), angle.cos()
    if layout == "interleaved":
        return torch.stack((sin, cos), -1).flatten(-2)
    return torch.cat((sin, cos) if layout == "sin_cos" else (cos, sin), -1)
