"""As FoPE's authors compute it (TsinghuaC3I/Fourier-Position-Embedding, commit bd94b20): olmo/model.py, lines 432-434, 560-574,
582-592 and 702-720."""

import torch
import torch.nn.functional as F

backend = "torch"


def rotate_half(x):
    x1, x2 = x.view(*x.shape[:-1], 2, x.shape[-1] // 2).unbind(dim=-2)
    return torch.cat((-x2, x1), dim=-1)


def fope(x, positions, cos_mix, sin_mix, /, *, base):
    if cos_mix.ndim == 3 and cos_mix.shape[0] != x.shape[-3]:
        raise NotImplementedError(cos_mix.shape)
    dim = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim))
    freqs = positions[..., None].float() * inv_freq[: cos_mix.shape[-2]]
    heads = "h" if cos_mix.ndim == 3 else ""
    if heads and positions.ndim > 1:
        freqs = freqs.expand(*freqs.shape[:-3], x.shape[-3], *freqs.shape[-2:])
        waves = "...htD"
    else:
        waves = "...tD"
    fourier_sin = torch.einsum(f"{waves},{heads}Dd->...{heads}td", freqs.sin(), sin_mix)
    fourier_cos = torch.einsum(f"{waves},{heads}Dd->...{heads}td", freqs.cos(), cos_mix)
    fourier_sin = F.pad(fourier_sin, (0, dim // 2 - fourier_sin.shape[-1]), value=1)
    fourier_cos = F.pad(fourier_cos, (0, dim // 2 - fourier_cos.shape[-1]), value=1)
    fourier_sin = torch.cat((fourier_sin, fourier_sin), dim=-1)
    fourier_cos = torch.cat((fourier_cos, fourier_cos), dim=-1)
    return ((x * fourier_cos) + (rotate_half(x) * fourier_sin)).to(x.dtype)
