"""As mamba-ssm computes it (state-spaces/mamba, commit 37f9d02): mamba_ssm/ops/triton/mamba3/mamba3_mimo_rotary_step.py, lines
206-270, all tokens at once, in float32, in both of its pairings."""

import torch

backend = "torch"


def cumulative_rope(x, increments, start, /, *, layout, inverse=False, lanes="leading"):
    if layout == "interleaved_to_half" or lanes == "trailing":
        raise NotImplementedError
    angle = start.float()[..., None, :] + increments.float().cumsum(dim=-2)
    cos, sin = torch.cos(angle), torch.sin(angle)
    if inverse:
        sin = -sin
    rotary_dim = 2 * angle.shape[-1]
    x_rot, x_pass = x[..., :rotary_dim].float(), x[..., rotary_dim:]
    if layout == "interleaved":
        x_rot = x_rot.reshape(*x.shape[:-1], rotary_dim // 2, 2)
        x0, x1 = x_rot[..., 0], x_rot[..., 1]
        out = torch.stack([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1).reshape(*x.shape[:-1], rotary_dim)
    else:
        x0, x1 = x_rot[..., : rotary_dim // 2], x_rot[..., rotary_dim // 2 :]
        out = torch.cat([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)
    return torch.cat([out.to(x.dtype), x_pass], dim=-1)
