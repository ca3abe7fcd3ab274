"""`< 0` for `> 0`: keys before the query take the second half. A port that read the TensorFlow code's `n = -relative`."""

import torch

backend = "torch"
DEFECT = "the halves of the buckets are exchanged"
NAMES = ("t5-halves-exchanged", "t5-sign")


def bucket(relative, bidirectional, count, limit):
    offset = torch.zeros_like(relative)
    if bidirectional:
        count = count // 2
        offset = (relative < 0).long() * count
        relative = relative.abs()
    else:
        relative = (-relative).clamp(min=0)
    exact = count // 2
    ratio = torch.log(relative.clamp(min=1).double() / exact) / torch.log(torch.tensor(limit / exact, dtype=torch.float64))
    large = (exact + (ratio * (count - exact) + 1e-9).floor().long()).clamp(max=count - 1)
    return offset + torch.where(relative < exact, relative, large)


def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
    relative = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).long()
    values = table[bucket(relative, bidirectional, table.shape[0], max_distance)]
    return values.permute(*range(values.ndim - 3), -1, -3, -2)
