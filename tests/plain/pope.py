"""As PoPE-pytorch computes it (lucidrains/PoPE-pytorch, commit ee11cab): PoPE_pytorch/pope.py, lines 56-78, 107 and
141-145."""

import math

import torch
import torch.nn.functional as F

backend = "torch"


def pope(x, positions, /, *, layout, base, phases=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    dim = x.shape[-1]
    inv_freqs = base ** -(torch.arange(dim).float() / dim)
    freqs = positions[..., None].float() * inv_freqs
    if phases is not None:
        freqs = freqs + phases.clamp(-2.0 * math.pi, 0.0)
    size = F.softplus(x)
    return torch.stack([size * freqs.cos(), size * freqs.sin()], dim=-1).flatten(-2)
