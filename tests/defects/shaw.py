"""Relative embeddings of Shaw et al., implemented with one defect each."""

import numpy as np
import torch
from planting import planted


@planted("order of the difference ignored", names=("shaw-key-minus-query",), backend="torch")
def shaw_difference_order():
    """The difference is always key - query: tensor2tensor's order with SpeechT5's tables."""

    def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
        index = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).clamp(-left, right) + left
        return q @ k.transpose(-1, -2) + torch.einsum("...qd,...qkd->...qk", q, key_table[index])

    def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
        index = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).clamp(-left, right) + left
        return weights @ v + torch.einsum("...qk,...qkd->...qd", weights, value_table[index])

    return shaw_scores, shaw_values


@planted("table row off by one", names=("shaw-row-minus-1",))
def shaw_row_off_by_one():
    """The shift is left - 1, so the first two distances share a row. Imagined: a port from a 1-based language."""

    def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
        if order != "key_minus_query":
            raise NotImplementedError(order)
        distance = np.clip(k_positions[..., None, :] - q_positions[..., :, None], -left, right)
        row = np.clip(distance + left - 1, 0, left + right)
        keys = k[..., None, :, :] + key_table[row]
        return (q[..., :, None, :] * keys).sum(-1)

    return shaw_scores


@planted("relative term of the values dropped", names=("shaw-term-dropped",))
def shaw_values_term_dropped():
    """The values get no relative term; many ports of Shaw keep a^K only."""

    def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
        return np.matmul(weights, v)

    return shaw_values


@planted("left and right swapped", names=("shaw-clip-exchanged",))
def shaw_windows_swapped():
    """The two clips change places, clip(d, -right, left) + right: wav2vec2-BERT's 64 and 8 in the other order."""

    def rows(q_positions, k_positions, left, right, order):
        difference = k_positions[..., None, :] - q_positions[..., :, None]
        if order == "query_minus_key":
            difference = -difference
        return np.clip(difference, -right, left) + right

    def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
        a = key_table[rows(q_positions, k_positions, left, right, order)]
        return np.einsum("...qd,...kd->...qk", q, k) + np.einsum("...qd,...qkd->...qk", q, a)

    def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
        a = value_table[rows(q_positions, k_positions, left, right, order)]
        return np.einsum("...qk,...kd->...qd", weights, v) + np.einsum("...qk,...qkd->...qd", weights, a)

    return shaw_scores, shaw_values
