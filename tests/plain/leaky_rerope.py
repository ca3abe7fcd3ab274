"""As Leaky ReRoPE's author computes the scores of a prefill (bojone/rerope, commit acfe788): leaky_rerope_patch.py, lines
11-24 and 73-97, with the linear scaling of transformers 4.31, which divides positions."""

import torch

backend = "torch"


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rotated(x, position, base, factor=1):
    inv_freq = 1.0 / (base ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    freqs = (position.float() / factor)[..., None] * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    return x * emb.cos() + rotate_half(x) * emb.sin()


def scores(q, k):
    if q.ndim > 2:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
    return torch.matmul(q, k.transpose(-2, -1))


def leaky_rerope(q, k, q_positions, k_positions, /, *, window, factor, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    offset = window * (factor - 1)
    near = scores(rotated(q, q_positions, base), rotated(k, k_positions, base))
    far = scores(rotated(q, q_positions + offset, base, factor), rotated(k, k_positions, base, factor))
    rectified = (q_positions[..., :, None] - k_positions[..., None, :]).abs() < window
    return torch.where(rectified, near, far)
