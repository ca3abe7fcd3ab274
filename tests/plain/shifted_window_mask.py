"""As transformers 5.23.0 computes it for Swin: models/swin/modeling_swin.py, `get_attn_mask`, lines 597-605, along one axis."""

import torch

backend = "torch"


def shifted_window_mask(q_positions, k_positions, /, *, size, window, shift):
    cells = torch.arange(size)
    region = (cells >= size - window).long() + (cells >= size - shift).long()
    together = q_positions[..., :, None] // window == k_positions[..., None, :] // window
    if shift <= 0:
        return together
    attn_mask = region[k_positions][..., None, :] - region[q_positions][..., :, None]
    return together & (attn_mask == 0)
