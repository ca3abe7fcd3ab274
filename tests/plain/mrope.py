"""As transformers 5.23.0 computes Qwen2-VL's: models/qwen2_vl/modeling_qwen2_vl.py, lines 120-142 and 146-176."""

import torch

backend = "torch"


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def mrope(x, positions, /, *, sections, arrangement, layout, base):
    dim = 2 * sum(sections)
    if (arrangement, layout) != ("chunked", "half") or dim != x.shape[-1]:
        raise NotImplementedError(arrangement, layout)
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim))
    freqs = positions[..., None].float() * inv_freq

    def recomposed(freq):
        freq = torch.cat([m[i] for i, m in enumerate(freq.split(list(sections), dim=-1))], dim=-1)
        return torch.cat((freq, freq), dim=-1)

    cos, sin = recomposed(freqs.cos()).to(dtype=x.dtype), recomposed(freqs.sin()).to(dtype=x.dtype)
    return (x * cos) + (rotate_half(x) * sin)
