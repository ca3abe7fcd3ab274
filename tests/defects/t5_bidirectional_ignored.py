"""An encoder gets a decoder's buckets: `bidirectional` is not read. Imagined: a decoder-only port."""

import torch

backend = "torch"
DEFECT = "T5 bidirectional treated as causal"
NAMES = ("t5-causal",)


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    distance = (-relative_positions).clamp(min=0)
    exact = num_buckets // 2
    log = torch.log(distance.clamp(min=1).float() / exact) / torch.log(torch.tensor(max_distance / exact))
    large = (exact + (log * (num_buckets - exact)).long()).clamp(max=num_buckets - 1)
    return torch.where(distance < exact, distance, large)
