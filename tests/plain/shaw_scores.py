"""As transformers 5.23.0 computes Wav2Vec2-BERT's: models/wav2vec2_bert/modeling_wav2vec2_bert.py, in
`_apply_relative_key_position_encoding`, lines 308-316."""

import torch

backend = "torch"


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    if order != "key_minus_query":
        raise NotImplementedError(order)
    distance = torch.clamp(k_positions[..., None, :] - q_positions[..., :, None], -left, right)
    positional = torch.nn.functional.embedding(distance + left, key_table)
    return torch.matmul(q, k.transpose(-2, -1)) + torch.einsum("...ld,...lrd->...lr", q, positional)
