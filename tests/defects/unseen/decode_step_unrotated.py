"""A call of one token returns its input: the single-token path had a bug of its own in MLX #1340."""

import torch

backend = "torch"
DEFECT = "nothing is rotated when there is one position"
NAMES = ()


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "half":
        raise NotImplementedError(layout)
    if x.ndim < 2 or x.shape[-2] == 1:
        return x.clone()
    d = rotary_dim or x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, d, 2, dtype=torch.int64).float() / d))
    emb = torch.cat((positions.float().unsqueeze(-1) * inv_freq,) * 2, dim=-1)
    turning, passing = x[..., :d], x[..., d:]
    x1, x2 = turning.chunk(2, dim=-1)
    return torch.cat((turning * emb.cos() + torch.cat((-x2, x1), -1) * emb.sin(), passing), dim=-1)
