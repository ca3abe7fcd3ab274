"""Query minus key, and a maximal distance that is not a parameter, as in llama.cpp."""

import torch

backend = "torch"
DEFECT = "relative positions negated, and max_distance fixed at 128"
NAMES = (("t5-sign", "t5-max-distance-128"),)


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    x = -relative_positions.long()
    offset = 0
    if bidirectional:
        num_buckets = num_buckets // 2
        offset = num_buckets * (x > 0).long()
        x = x.abs()
    else:
        x = torch.relu(-x)
    exact = num_buckets // 2
    scale = (num_buckets - exact) / torch.log(torch.tensor(128.0 / exact, dtype=torch.float64))
    large = exact + torch.floor(torch.log(x.clamp(min=exact).double() / exact) * scale + 1e-9).long()
    return offset + torch.where(x < exact, x, large.clamp(max=num_buckets - 1))
