"""As Self-Extend's authors have them where one token is decoded (datamllab/LongLM, commit cdbbb06): self_extend_patch/Llama.py,
lines 268-271, whose shift is rounded down; that of line 134 is exact."""

import torch

backend = "torch"


def self_extend_distances(q_positions, k_positions, /, *, group, window, rounding, dtype=None):
    q, k = q_positions[..., :, None], k_positions[..., None, :]
    taken = window / group if rounding == "exact" else window // group
    grouped = q // group - k // group + (window - taken)
    return torch.where((q >= k) & (q - k < window), q - k, grouped).to(dtype)
