"""The position code of a small NumPy program, as such programs have it, and the mistakes that such code has had."""

import math
from typing import Any

import numpy as np


def sinusoids(positions: Any, dim: int) -> Any:
    """Sines and cosines in turn, as the paper has them."""
    angles = positions[:, None] / 10_000 ** (np.arange(0, dim, 2) / dim)
    table = np.zeros((len(positions), dim), dtype=np.float32)
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def sinusoids_joined(positions: Any, dim: int) -> Any:
    table = sinusoids(positions, dim)
    return np.concatenate((table[:, ::2], table[:, 1::2]), axis=1)


def sinusoids_endpoint(positions: Any, dim: int) -> Any:
    angles = positions[:, None] / 10_000 ** (np.arange(dim // 2) / (dim // 2 - 1))
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(-1, dim).astype(np.float32)


def frequencies(dim: int, base: float, factor: float, low: float, high: float, old: int) -> Any:
    """Llama 3's: long waves are stretched, short ones kept, those between them blended."""
    freqs = base ** (-np.arange(0, dim, 2) / dim)
    turns = old * freqs / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return freqs * (smooth + (1 - smooth) / factor)


def frequencies_without_blend(dim: int, base: float, factor: float, low: float, high: float, old: int) -> Any:
    freqs = base ** (-np.arange(0, dim, 2) / dim)
    return np.where(old * freqs / (2 * math.pi) < low, freqs / factor, freqs)


def rotate(x: Any, positions: Any, freqs: Any) -> Any:
    """Rotate the halves of (T, D)."""
    angles = positions[:, None] * freqs
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1).astype(x.dtype)


def window(q_positions: Any, k_positions: Any, size: int) -> Any:
    """The causal mask of a window that counts the query, for queries after a cache."""
    distance = q_positions[:, None] - k_positions[None, :]
    return (distance >= 0) & (distance < size)
