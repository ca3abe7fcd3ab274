"""The cos/sin cache is keyed by length and not by offset; rotary-embedding-torch #11 (bug in cache)."""

import torch

backend = "torch"
DEFECT = "second call with other positions returns the first table"
NAMES = ("table-cached-by-length",)


class Rotary(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, positions, dim, base):
        key = (tuple(positions.shape), dim, base)
        if key not in self.cache:
            inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
            freqs = positions[..., None].float() * inv_freq
            self.cache[key] = freqs.cos(), freqs.sin()
        return self.cache[key]


rotary = Rotary()


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    cos, sin = rotary(positions, x.shape[-1], base)
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)
