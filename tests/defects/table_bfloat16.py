"""cos and sin are kept in bfloat16 and widened when used; tt-metal #54516 (a reference built in bf16)."""

import torch

backend = "torch"
DEFECT = "cos and sin stored in bfloat16"
NAMES = ("table-bfloat16",)


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    freqs = positions.float()[..., None] * inv_freq.float()
    cos = (freqs.cos() * attention_factor).to(torch.bfloat16)
    sin = (freqs.sin() * attention_factor).to(torch.bfloat16)
    return cos.to(dtype or torch.float32), sin.to(dtype or torch.float32)
