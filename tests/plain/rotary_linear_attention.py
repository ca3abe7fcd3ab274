"""As RoFormer writes it, arXiv:2104.09864, equation (19), with elu(x) + 1 and in the order of linear attention: keys meet
values first, as in MLLA (LeapLabTHU/MLLA, commit 66b6d29), models/mlla.py, lines 86-91 and 129-139, which adds 1e-6 below."""

import torch
import torch.nn.functional as F

backend = "torch"


def rotated(x, positions, base):
    pairs = x.shape[-1] // 2
    angles = positions[..., None].float() * (1 / (base ** (torch.arange(pairs) / pairs)))
    rotations = torch.view_as_complex(torch.stack([torch.cos(angles), torch.sin(angles)], dim=-1))
    x = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(rotations * x).flatten(-2)


def rotary_linear_attention(q, k, v, q_positions, k_positions, /, *, layout, base, causal):
    if layout != "interleaved" or causal:
        raise NotImplementedError(layout)
    q, k = F.elu(q) + 1.0, F.elu(k) + 1.0
    z = 1 / (q @ k.sum(dim=-2, keepdim=True).transpose(-2, -1))
    kv = rotated(k, k_positions, base).transpose(-2, -1) @ v
    return rotated(q, q_positions, base) @ kv * z
