"""As Leaky ReRoPE's author has them in the prefill (bojone/rerope, commit acfe788): leaky_rerope_patch.py, lines 73-97:
beyond the window the query is moved on by `offset`, and positions are divided by the factor."""

import torch

backend = "torch"


def leaky_rerope_distances(q_positions, k_positions, /, *, window, factor, dtype=None):
    offset = window * (factor - 1)
    apart = q_positions[..., :, None] - k_positions[..., None, :]
    return torch.where(apart.abs() < window, apart, (apart + offset) / factor).to(dtype)
