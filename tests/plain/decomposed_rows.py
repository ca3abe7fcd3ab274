"""As transformers 5.23.0 computes them for SAM: models/sam/modeling_sam.py, in `get_rel_pos`, lines 755-757. Sizes for which
float32 is a row off are refused."""

import math

import torch

backend = "torch"


def decomposed_rows(q_positions, k_positions, /, *, q_size, k_size):
    step, back = max(k_size / q_size, 1.0), max(q_size / k_size, 1.0)
    q_coords = q_positions[..., :, None] * step
    k_coords = k_positions[..., None, :] * back
    relative_coords = (q_coords - k_coords) + (k_size - 1) * back
    under = min(q_size, k_size) // math.gcd(q_size, k_size)
    if under & (under - 1):
        raise NotImplementedError(under)
    return relative_coords.to(torch.long)
