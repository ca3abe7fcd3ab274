"""Sinusoidal tables, implemented with one defect each."""

import math

import numpy as np
import torch
from planting import planted


@planted("interleaved layout concatenated", names=("sinusoid-concatenated",))
def sinusoidal_concatenated():
    """Sines then cosines where they should alternate; multidim-positional-encoding #20 (concat in place of interleave)."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
        if layout not in ("interleaved", "sin_cos"):
            raise NotImplementedError(layout)
        inv_freq = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
        sin_inp = np.einsum("...,j->...j", positions.astype(np.float32), inv_freq)
        return np.concatenate((np.sin(sin_inp), np.cos(sin_inp)), axis=-1).astype(dtype or np.float32)

    return sinusoidal


@planted("cosine uses the next exponent", names=("sinusoid-cos-exponent",))
def sinusoidal_cos_exponent():
    """Sine and cosine use different exponents, 2i/d and (2i+1)/d: `2 * (i // 2)` forgotten in the TensorFlow tutorial."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        rates = 1 / np.power(np.float32(base), np.arange(dim, dtype=np.float32) / np.float32(dim))
        angles = positions[..., np.newaxis].astype(np.float32) * rates
        angles[..., 0::2] = np.sin(angles[..., 0::2])
        angles[..., 1::2] = np.cos(angles[..., 1::2])
        return angles.astype(dtype or np.float32)

    return sinusoidal


@planted("sin and cos in the other order", names=("sin-cos-exchanged",))
def sinusoidal_cos_first():
    """cos comes where sin should: cat([cos, sin]); flashinfer #3819 (timestep halves swapped), diffusers #1369."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
        half = dim // 2
        args = positions[..., None].astype(np.float32) * np.exp(-np.log(base) * np.arange(half) / half).astype(np.float32)
        if layout == "interleaved":
            out = np.stack([np.cos(args), np.sin(args)], axis=-1).reshape(*positions.shape, dim)
        elif layout == "sin_cos":
            out = np.concatenate([np.cos(args), np.sin(args)], axis=-1)
        else:
            raise NotImplementedError(layout)
        return out.astype(dtype or np.float32)

    return sinusoidal


@planted("endpoint exponent i/(d/2-1) for all", names=("endpoint-always",), backend="torch")
def sinusoidal_endpoint():
    """The exponent always divides by d/2 - 1, tensor2tensor's form, in place of the paper's; hojonathanho/diffusion #15."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=torch.float32):
        if layout == "interleaved":
            raise NotImplementedError(layout)
        half_dim = dim // 2
        emb = math.log(base) / max(half_dim - 1, 1)
        emb = torch.exp(torch.arange(half_dim, dtype=torch.float32) * -emb)
        emb = positions.float().unsqueeze(-1) * emb
        pair = (torch.sin(emb), torch.cos(emb)) if layout == "sin_cos" else (torch.cos(emb), torch.sin(emb))
        return torch.cat(pair, dim=-1).to(dtype or torch.float32)

    return sinusoidal


@planted("exponent doubled", names=("exponent-doubled",))
def sinusoidal_exponent_doubled():
    """The exponent is 2 * (2i) / d in a loop that already steps by two; a much copied PyTorch tutorial."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        pos = positions.astype(np.float32)
        pe = np.zeros((*positions.shape, dim), dtype=np.float32)
        for i in range(0, dim, 2):
            pe[..., i] = np.sin(pos / np.float32(base ** ((2 * i) / dim)))
            pe[..., i + 1] = np.cos(pos / np.float32(base ** ((2 * i) / dim)))
        return pe.astype(dtype or np.float32)

    return sinusoidal
