"""As transformers 5.23.0 computes them: models/t5/modeling_t5.py, lines 238-262."""

import math

import torch

backend = "torch"


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    buckets, distance = 0, relative_positions
    if bidirectional:
        num_buckets //= 2
        buckets += (distance > 0).to(torch.long) * num_buckets
        distance = torch.abs(distance)
    else:
        distance = -torch.min(distance, torch.zeros_like(distance))
    exact = num_buckets // 2
    share = torch.log(distance.float() / exact) / math.log(max_distance / exact)
    large = exact + (share * (num_buckets - exact)).to(torch.long)
    large = torch.min(large, torch.full_like(large, num_buckets - 1))
    return buckets + torch.where(distance < exact, distance, large)
