"""As transformers 5.23.0 computes DeepSeek-V4's: models/deepseek_v4/modeling_deepseek_v4.py, lines 137, 150-153, 346-370,
738-739, 754 and 873-879."""

import torch

backend = "torch"


def rotate_half(x):
    return torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)


def table(positions, dim, base):
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim))
    freqs = positions[..., None].float() * inv_freq
    return freqs.cos().repeat_interleave(2, dim=-1), freqs.sin().repeat_interleave(2, dim=-1)


def rotated(x, cos, sin):
    nope, rope = x[..., : -cos.shape[-1]], x[..., -cos.shape[-1] :]
    return torch.cat([nope, ((rope.float() * cos) + (rotate_half(rope).float() * sin)).to(x.dtype)], dim=-1)


def rotated_values(weights, v, q_positions, k_positions, /, *, layout, base, rotary_dim=None, lanes="leading"):
    dim = v.shape[-1] if rotary_dim is None else rotary_dim
    if layout != "interleaved" or (lanes != "trailing" and dim != v.shape[-1]):
        raise NotImplementedError(layout, lanes)
    values = rotated(v, *table(k_positions, dim, base))
    if weights.ndim > 2:
        values = values.repeat_interleave(weights.shape[-3] // v.shape[-3], dim=-3)
    cos, sin = table(q_positions, dim, base)
    return rotated(torch.matmul(weights, values), cos, -sin)
