"""
As the field computes Fourier features.

NeRF's code (bmild/nerf, commit 15327bb): run_nerf_helpers.py, lines 24-54. transformers 5.23.0 for Perceiver:
models/perceiver/modeling_perceiver.py, lines 2455-2477. perceiver-pytorch 0.11.0: perceiver_pytorch/perceiver_pytorch.py, lines
38-48.
"""

import math

import torch

backend = "torch"
FACTOR = {"radians": 1.0, "half_turns": math.pi, "turns": 2 * math.pi}


def fourier(x, bands, /, *, unit, arrangement, include, dtype=None):
    x, bands, factor = x.float(), bands.float(), FACTOR[unit]
    found = [x] if include == "first" else []
    if arrangement == "band wave coordinate":
        for freq in bands.movedim(-1, 0):
            for fn in (torch.sin, torch.cos):
                found.append(fn(x * freq * factor))
    elif arrangement == "wave coordinate band":
        features = (x[..., None] * bands).flatten(-2)
        found += [torch.sin(factor * features), torch.cos(factor * features)]
    elif arrangement == "coordinate wave band":
        scaled = x[..., None] * bands * factor
        parts = [scaled.sin(), scaled.cos()] + ([x[..., None]] if include == "by_coordinate" else [])
        found.append(torch.cat(parts, dim=-1).flatten(-2))
    else:
        raise NotImplementedError(arrangement)
    return torch.cat(found, dim=-1).to(dtype)
