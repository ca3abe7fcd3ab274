"""As RoPE-ViT's authors compute it (naver-ai/rope-vit, commit ce85c2e): self-attn/rope_self_attn.py, lines 32-39."""

import torch

backend = "torch"


def mixed_table(positions, frequencies, /, *, dtype=None):
    angles = sum(t.float().unsqueeze(-1) * f for t, f in zip(positions, frequencies, strict=True))
    cis = torch.polar(torch.ones_like(angles), angles)
    return cis.real.to(dtype), cis.imag.to(dtype)
