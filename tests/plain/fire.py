"""As the authors of DAPE compute it (chuanyang-Zheng/DAPE, commit bde344a): DAPE.py, lines 441-475. There positions are 0, 1,
2, ..., and keys after the query have distance 0. Here the caller gives positions, and these keys have their distance too."""

import torch
from torch.nn import functional as F

backend = "torch"


def fire(q_positions, k_positions, w1, b1, w2, b2, c, threshold, /, *, eps=1e-6):
    w1, b1, wide, b, c, threshold = (x.float() for x in (w1, b1, w2, b2, c, threshold))
    rel_distance = (q_positions[..., :, None] - k_positions[..., None, :]).abs().float()
    pos_normalizer = torch.max(q_positions.float(), threshold)[..., None]
    rel_distance = torch.log(torch.abs(c * rel_distance) + 1)
    pos_normalizer = torch.log(torch.abs(c * pos_normalizer) + 1) + eps
    normalized = (rel_distance / pos_normalizer)[..., None]
    hidden = F.relu(F.linear(normalized, w1[:, None], b1))
    return F.linear(hidden, wide, b).movedim(-1, -3).to(w2.dtype)
