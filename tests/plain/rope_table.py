"""As transformers 5.23.0 computes it: models/llama/modeling_llama.py, lines 110-116; the second half, which repeats the
first, is left out at the end."""

import torch

backend = "torch"


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    freqs = positions[..., None].float() * inv_freq.to(dtype=torch.float)
    emb = torch.cat((freqs, freqs), dim=-1)
    cos, sin = emb.cos() * attention_factor, emb.sin() * attention_factor
    pairs = inv_freq.shape[0]
    return cos[..., :pairs].to(dtype=dtype), sin[..., :pairs].to(dtype=dtype)
