"""As NeMo computes it (NVIDIA/NeMo, commit 000b931): nemo/collections/nlp/modules/common/megatron/position_embedding/
sandwich_relative_position_embedding.py, lines 60-75, with the positions that the caller gives."""

import torch

backend = "torch"


def sandwich(q_positions, k_positions, /, *, heads, dim, base=10000.0, dtype=None):
    relative_position = (q_positions[..., :, None] - k_positions[..., None, :]).float()
    inv_freq = 1.0 / (base ** (2 * torch.arange(1, dim / 2 + 1) / dim))
    bias = torch.sum((relative_position[..., None] * inv_freq).cos(), axis=-1)[..., None, :, :]
    bias_scales = torch.arange(1, heads + 1, 1)[:, None, None]
    return ((bias - dim / 2) / (bias_scales * 8 / heads)).to(dtype)
