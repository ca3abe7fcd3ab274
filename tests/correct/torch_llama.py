"""Llama's rotary embedding as in transformers: angles in float32, cos and sin cast to the dtype of x."""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


class LlamaRotaryEmbedding(torch.nn.Module):
    def __init__(self, dim, base):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).to(dtype=torch.float) / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    @torch.no_grad()
    def forward(self, x, position_ids):
        freqs = position_ids[..., None].float() * self.inv_freq.float()
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(dtype=x.dtype), emb.sin().to(dtype=x.dtype)


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def rope_frequencies(dim, /, *, base):
    return LlamaRotaryEmbedding(dim, base).inv_freq, 1.0


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    freqs = positions[..., None].float() * inv_freq.float()
    dtype = dtype or torch.float32
    return (freqs.cos() * attention_factor).to(dtype), (freqs.sin() * attention_factor).to(dtype)


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    dim = 2 * cos.shape[-1]
    cos, sin = torch.cat((cos, cos), dim=-1).to(x.dtype), torch.cat((sin, sin), dim=-1).to(x.dtype)
    x_rot, x_pass = x[..., :dim], x[..., dim:]
    return torch.cat(((x_rot * cos) + (rotate_half(x_rot) * sin), x_pass), dim=-1)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "half":
        raise NotImplementedError(layout)
    dim = rotary_dim or x.shape[-1]
    cos, sin = LlamaRotaryEmbedding(dim, base)(x, positions)
    x_rot, x_pass = x[..., :dim], x[..., dim:]
    return torch.cat(((x_rot * cos) + (rotate_half(x_rot) * sin), x_pass), dim=-1)
