"""Llama 3's factor is 8 for everybody, as Llama 3.1 has it; swiss-ai/Megatron-LM #80."""

import math

import torch

backend = "torch"
DEFECT = "factor fixed at 8"
NAMES = ("llama3-factor-8",)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim))
    if scaling is None:
        return inv_freq.float(), 1.0
    if type(scaling).__name__ != "Llama3":
        raise NotImplementedError(scaling)
    turns = scaling.original_length * inv_freq / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    if low == high:
        raise NotImplementedError(scaling)
    smooth = ((turns - low) / (high - low)).clamp(0, 1)
    return ((1 - smooth) * inv_freq / 8 + smooth * inv_freq).float(), 1.0
