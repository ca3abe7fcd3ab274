"""As transformers computes them. Wav2Vec2-BERT's, version 5.23.0: models/wav2vec2_bert/modeling_wav2vec2_bert.py, lines
308-316. With query minus key, BERT's relative_key and relative_key_query, version 4.57.1: models/bert/modeling_bert.py, lines
285-299, with the clip of SpeechT5, version 5.23.0: models/speecht5/modeling_speecht5.py, lines 436-440. With zeros outside, a
table that is padded as VITS pads it, version 5.23.0: models/vits/modeling_vits.py, lines 960-967."""

import torch

backend = "torch"


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order, outside="clip", terms="query"):
    distance = k_positions[..., None, :] - q_positions[..., :, None]
    if order == "query_minus_key":
        distance = q_positions[..., :, None] - k_positions[..., None, :]
    if outside == "zero":
        left, right, key_table = left + 1, right + 1, torch.nn.functional.pad(key_table, [0, 0, 1, 1])
    distance = torch.clamp(distance, -left, right)
    positional = torch.nn.functional.embedding(distance + left, key_table)
    scores = torch.matmul(q, k.transpose(-2, -1)) + torch.einsum("...ld,...lrd->...lr", q, positional)
    if terms == "query_and_key":
        scores = scores + torch.einsum("...rd,...lrd->...lr", k, positional)
    return scores
