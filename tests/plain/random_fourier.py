"""
As transformers 5.23.0 computes SAM's: models/sam/modeling_sam.py, lines 552-566.

diffusers 0.42.1 can exchange the halves: models/embeddings.py, lines 1116-1122.
"""

import math

import torch

backend = "torch"


def random_fourier(x, matrix, /, *, layout, dtype=None):
    coordinates = 2 * math.pi * (x.to(matrix.dtype) @ matrix)
    waves = [torch.sin(coordinates), torch.cos(coordinates)]
    return torch.cat(waves if layout == "sin_cos" else waves[::-1], dim=-1).to(dtype)
