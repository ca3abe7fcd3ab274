"""As vLLM fills its cache: vllm/model_executor/layers/rotary_embedding/base.py (commit 04458da), lines 72-83, read at
positions; Linear as linear_scaling_rope.py beside it (commit 0f17ee0) has it."""

import torch

backend = "torch"
scalings = ("Linear",)


def rope_cos_sin(positions, dim, /, *, base, scaling=None, dtype=None):
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim))
    t = positions.to(torch.float)
    if scaling is not None:
        t = t / scaling.factor
    freqs = torch.einsum("...,j->...j", t, inv_freq)
    return freqs.cos().to(dtype), freqs.sin().to(dtype)
