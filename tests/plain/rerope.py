"""As ReRoPE's author computes the scores of a prefill (bojone/rerope, commit acfe788): rerope_patch.py, lines 11-19 and
76-88."""

import torch

backend = "torch"


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rotated(x, position, base):
    inv_freq = 1.0 / (base ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    freqs = position[..., None].float() * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    return x * emb.cos() + rotate_half(x) * emb.sin()


def scores(q, k):
    if q.ndim > 2:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
    return torch.matmul(q, k.transpose(-2, -1))


def rerope(q, k, q_positions, k_positions, /, *, window, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    near = scores(rotated(q, q_positions, base), rotated(k, k_positions, base))
    far = scores(rotated(q, q_positions * 0 + window, base), k)
    rectified = (q_positions[..., :, None] - k_positions[..., None, :]).abs() < window
    return torch.where(rectified, near, far)
