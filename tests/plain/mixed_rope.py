"""As RoPE-ViT's authors compute it (naver-ai/rope-vit, commit ce85c2e): self-attn/rope_self_attn.py, lines 32-39 and 61-67.
They have a frequency for every pair of channels; here the channels beyond the pairs stay as they are."""

import torch

backend = "torch"


def mixed_rope(x, positions, frequencies, /, *, layout):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    angles = sum(t.float().unsqueeze(-1) * f for t, f in zip(positions, frequencies, strict=True))
    cis = torch.polar(torch.ones_like(angles), angles)
    rotating, passed = x[..., : 2 * frequencies.shape[-1]], x[..., 2 * frequencies.shape[-1] :]
    pairs = torch.view_as_complex(rotating.float().contiguous().reshape(*x.shape[:-1], -1, 2))
    return torch.cat([torch.view_as_real(pairs * cis).flatten(-2).type_as(x), passed], dim=-1)
