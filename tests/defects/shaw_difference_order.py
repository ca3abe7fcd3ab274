"""The difference is always key - query: tensor2tensor's order with SpeechT5's tables."""

import torch

backend = "torch"
DEFECT = "order of the difference ignored"
NAMES = ("shaw-key-minus-query",)


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    index = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).clamp(-left, right) + left
    return q @ k.transpose(-1, -2) + torch.einsum("...qd,...qkd->...qk", q, key_table[index])


def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
    index = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).clamp(-left, right) + left
    return weights @ v + torch.einsum("...qk,...qkd->...qd", weights, value_table[index])
