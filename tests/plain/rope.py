"""As vLLM computes it without a kernel: vllm/model_executor/layers/rotary_embedding/base.py (commit 04458da), lines 41-60 and
72-83, and common.py beside it (commit 002d181), lines 35-53."""

import torch

backend = "torch"


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout == "interleaved_to_half":
        raise NotImplementedError(layout)
    rotary_dim = x.shape[-1] if rotary_dim is None else rotary_dim
    inv_freq = 1.0 / (base ** (torch.arange(0, rotary_dim, 2, dtype=torch.float) / rotary_dim))
    freqs = torch.einsum("...,j->...j", positions.to(torch.float), inv_freq)
    cos, sin = freqs.cos().to(x.dtype), freqs.sin().to(x.dtype)
    rot, passed = x[..., :rotary_dim], x[..., rotary_dim:]
    neox = layout == "half"
    x1, x2 = torch.chunk(rot, 2, dim=-1) if neox else (rot[..., ::2], rot[..., 1::2])
    o1, o2 = x1 * cos - x2 * sin, x2 * cos + x1 * sin
    rot = torch.cat((o1, o2), dim=-1) if neox else torch.stack((o1, o2), dim=-1).flatten(-2)
    return torch.cat((rot, passed), dim=-1)
