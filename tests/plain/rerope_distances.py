"""As ReRoPE's author has them in the prefill (bojone/rerope, commit acfe788): rerope_patch.py, lines 77-88."""

import torch

backend = "torch"


def rerope_distances(q_positions, k_positions, /, *, window):
    apart = q_positions[..., :, None] - k_positions[..., None, :]
    return torch.where(apart.abs() < window, apart, window)
