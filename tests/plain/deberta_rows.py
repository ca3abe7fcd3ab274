"""As transformers 5.23.0 computes them for DeBERTa-v2: models/deberta_v2/modeling_deberta_v2.py, lines 56-68 (the buckets), and
the clamp of c2p_pos, line 312."""

import torch

backend = "torch"


def deberta_rows(relative_positions, /, *, num_buckets, max_distance):
    relative_pos, span = relative_positions, max_distance
    if num_buckets is not None:
        sign = torch.sign(relative_pos)
        mid, span = num_buckets // 2, num_buckets
        abs_pos = torch.where(
            (relative_pos < mid) & (relative_pos > -mid), torch.tensor(mid - 1).type_as(relative_pos), torch.abs(relative_pos)
        )
        share = torch.log(abs_pos / mid) / torch.log(torch.tensor((max_distance - 1) / mid)) * (mid - 1)
        log_pos = torch.ceil(share) + mid
        relative_pos = torch.where(abs_pos <= mid, relative_pos.type_as(log_pos), log_pos * sign).to(torch.long)
    return torch.clamp(relative_pos + span, 0, span * 2 - 1)
