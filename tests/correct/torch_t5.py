"""T5's buckets with a float32 logarithm, as in transformers' `T5Attention._relative_position_bucket`."""

import math

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    relative_buckets = 0
    relative_position = relative_positions
    if bidirectional:
        num_buckets //= 2
        relative_buckets += (relative_position > 0).to(torch.long) * num_buckets
        relative_position = torch.abs(relative_position)
    else:
        relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
    max_exact = num_buckets // 2
    is_small = relative_position < max_exact
    relative_position_if_large = max_exact + (
        torch.log(relative_position.float() / max_exact) / math.log(max_distance / max_exact) * (num_buckets - max_exact)
    ).to(torch.long)
    relative_position_if_large = torch.min(
        relative_position_if_large, torch.full_like(relative_position_if_large, num_buckets - 1)
    )
    relative_buckets += torch.where(is_small, relative_position, relative_position_if_large)
    return relative_buckets


def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
    memory_position, context_position = k_positions[..., None, :], q_positions[..., :, None]
    buckets = t5_buckets(
        memory_position - context_position, bidirectional=bidirectional, num_buckets=table.shape[0], max_distance=max_distance
    )
    return torch.nn.functional.embedding(buckets, table).movedim(-1, -3)
