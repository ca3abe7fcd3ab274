"""The table is [t0, t0, t1, t1, ...] while `rotate_half` rotates halves; raiyanyahya/how-to-train-your-gpt #6."""

import torch

backend = "torch"
DEFECT = "table interleaved, rotation in halves"
NAMES = ("table-other-layout",)


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    dim = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    emb = (positions[..., None].float() * inv_freq).repeat_interleave(2, dim=-1)
    return x * emb.cos() + rotate_half(x) * emb.sin()
