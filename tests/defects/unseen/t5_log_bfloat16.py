"""The logarithm is taken in bfloat16, so some far keys fall into the neighbouring bucket."""

import torch

backend = "torch"
DEFECT = "bucket logarithm in bfloat16"
NAMES = ()


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    if bidirectional:
        num_buckets = num_buckets // 2
        side, n = (relative_positions > 0).long() * num_buckets, relative_positions.abs()
    else:
        side, n = 0, (-relative_positions).clamp(min=0)
    exact = num_buckets // 2
    top = torch.log(torch.tensor(max_distance / exact, dtype=torch.bfloat16))
    log = torch.log(n.clamp(min=1).to(torch.bfloat16) / exact) / top * (num_buckets - exact)
    return side + torch.where(n < exact, n, (exact + log.long()).clamp(max=num_buckets - 1))
