"""As DeepSeek computes them (deepseek-ai/DeepSeek-V3, commit 9b4e978), without a context extension: inference/model.py, lines
366-392, 434 and 466-479."""

import torch

backend = "torch"


def rotated(x, positions, base):
    dim = x.shape[-1]
    freqs = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    freqs = positions[..., None].float() * freqs
    cis = torch.polar(torch.ones_like(freqs), freqs)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * cis).flatten(-2).to(x.dtype)


def mla_logits(q_nope, q_rope, k_nope, k_rope, q_positions, k_positions, /, *, layout, base, scale=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    if q_positions.ndim > 1:
        q_positions = q_positions.unsqueeze(-2)
    k_pe = rotated(k_rope, k_positions, base).unsqueeze(-3)
    q = torch.cat([q_nope, rotated(q_rope, q_positions, base)], dim=-1)
    k = torch.cat([k_nope, k_pe.expand(*k_nope.shape[:-1], -1)], dim=-1)
    return torch.einsum("...qd,...kd->...qk", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
