"""Tensor2tensor's difference taken the other way for everybody; SpeechT5's convention, hard-coded."""

backend = "torch"
DEFECT = "the difference is always query minus key"
NAMES = ("shaw-query-minus-key",)


def relative(table, q_positions, k_positions, left, right):
    gap = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
    return table[gap.clamp(-left, right) + left]


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    r = relative(key_table, q_positions, k_positions, left, right)
    return q @ k.transpose(-1, -2) + (q.unsqueeze(-2) * r).sum(-1)


def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
    r = relative(value_table, q_positions, k_positions, left, right)
    return weights @ v + (weights.unsqueeze(-1) * r).sum(-2)
