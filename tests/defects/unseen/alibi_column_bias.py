"""A row of key positions stands for every form; llm-foundry #186 and Baichuan-13B #172 ask why it differs from the paper."""

import torch

backend = "torch"
DEFECT = "the bias is m*j in every form, which only a causal softmax forgives"
NAMES = ()


def slopes(n):
    below = 2 ** (n.bit_length() - 1)
    first = [2 ** (-8 * (h + 1) / below) for h in range(below)]
    return first + [2 ** (-4 * (2 * h + 1) / below) for h in range(n - below)]


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    m = torch.tensor(slopes(heads), dtype=torch.float32)
    bias = m.view(-1, 1, 1) * k_positions[..., None, None, :].to(torch.float32)
    if form != "key":
        bias = bias.expand(*bias.shape[:-2], q_positions.shape[-1], bias.shape[-1])
    return bias.to(dtype or torch.float32)
