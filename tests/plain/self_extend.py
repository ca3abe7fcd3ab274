"""As Self-Extend's authors compute the scores (datamllab/LongLM, commit cdbbb06): self_extend_patch/Llama.py, lines 27-58
and 129-180, whose shift is exact; that of self_extend_patch/Llama_4_40.py, line 131, is rounded down."""

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


def self_extend(q, k, q_positions, k_positions, /, *, group, window, rounding, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    taken = window / group if rounding == "exact" else window // group
    q_groups, k_groups = q_positions // group + window - taken, k_positions // group
    near = scores(rotated(q, q_positions, base), rotated(k, k_positions, base))
    far = scores(rotated(q, q_groups, base), rotated(k, k_groups, base))
    apart = q_positions[..., :, None] - k_positions[..., None, :]
    return torch.where((apart >= 0) & (apart < window), near, far)
