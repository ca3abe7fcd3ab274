"""As transformers 5.23.0 computes it for DeBERTa-v2, without the scales: models/deberta_v2/modeling_deberta_v2.py, lines 56-68
(the buckets) and 309-337 (both terms)."""

import torch

backend = "torch"


def rows_of(relative_pos, num_buckets, max_distance):
    span = max_distance
    if num_buckets is not None:
        mid, span = num_buckets // 2, num_buckets
        near = (relative_pos < mid) & (relative_pos > -mid)
        abs_pos = torch.where(near, torch.tensor(mid - 1).type_as(relative_pos), torch.abs(relative_pos))
        share = torch.log(abs_pos / mid) / torch.log(torch.tensor((max_distance - 1) / mid)) * (mid - 1)
        log_pos = torch.ceil(share) + mid
        bucket_pos = torch.where(abs_pos <= mid, relative_pos.type_as(log_pos), log_pos * torch.sign(relative_pos))
        relative_pos = bucket_pos.to(torch.long)
    return torch.clamp(relative_pos + span, 0, span * 2 - 1)


def deberta_scores(q, k, q_positions, k_positions, /, *, num_buckets, max_distance, p2c, rel_k=None, rel_q=None):
    if p2c != "code":
        raise NotImplementedError(p2c)
    relative_pos = q_positions[..., :, None] - k_positions[..., None, :]
    index = rows_of(relative_pos, num_buckets, max_distance)
    score = torch.matmul(q, k.transpose(-1, -2))
    index = index.expand(score.shape)
    if rel_k is not None:
        score = score + torch.gather(torch.matmul(q, rel_k.transpose(-1, -2)), dim=-1, index=index)
    if rel_q is not None:
        p2c_att = torch.matmul(k, rel_q.transpose(-1, -2))
        score = score + torch.gather(p2c_att, dim=-1, index=index.transpose(-1, -2)).transpose(-1, -2)
    return score
