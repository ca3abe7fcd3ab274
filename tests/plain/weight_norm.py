"""
As PyTorch computes it (commit 011f7a8): aten/src/ATen/native/WeightNorm.cpp, lines 30-48 and 94-119.

A direction of zeros gives NaN there and is refused here.
"""

import torch

backend = "torch"


def weight_norm(v, g, /, *, axis):
    others = [k for k in range(3) if k != axis]
    norm = torch.sqrt(torch.sum(v * v, dim=others, keepdim=True))
    if v.numel() and bool((norm == 0).any()):
        raise NotImplementedError
    return v * (g / norm)
