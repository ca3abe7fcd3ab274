"""As mamba-ssm computes it one token after another (state-spaces/mamba, commit 37f9d02):
mamba_ssm/ops/triton/mamba3/mamba3_mimo_rotary_step.py, lines 206-208, with the products by pi, step and tanh already made."""

import torch

backend = "torch"


def cumulative_angles(increments, start, /, *, dtype=None):
    angle_state = start.float()
    angles = []
    for token in increments.float().unbind(-2):
        angle_state = angle_state + token
        angles.append(angle_state)
    if not angles:
        return torch.empty_like(increments, dtype=dtype)
    return torch.stack(angles, dim=-2).to(dtype)
