"""The position code of a small PyTorch model, as such models have it, and the mistakes that such code has had."""

import math
from typing import Any

import torch


class Rotary:
    """Cosines and sines of all positions up to a length, as the buffers of a module are."""

    def __init__(self, dim: int, base: float, length: int, factor: float = 1.0) -> None:
        inv_freq = 1.0 / base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
        angles = torch.outer(torch.arange(length, dtype=torch.float32), inv_freq)
        table = torch.cat((angles, angles), dim=-1)
        self.cos, self.sin = table.cos() * factor, table.sin() * factor

    def __call__(self, x: Any, positions: Any) -> Any:
        """Rotate (B, H, T, D) by positions (B, T)."""
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
        return (x.float() * cos + turned.float() * sin).to(x.dtype)


def rotate(x: Any, positions: Any, base: float) -> Any:
    return Rotary(x.shape[-1], base, int(positions.max()) + 1)(x, positions)


def rotate_positions_in_bfloat16(x: Any, positions: Any, base: float) -> Any:
    held = positions.to(torch.bfloat16).to(torch.int64)
    return Rotary(x.shape[-1], base, int(held.max()) + 1)(x, held)


def rotate_without_the_tail(x: Any, positions: Any, base: float) -> Any:
    whole = positions.shape[1] // 64 * 64
    return torch.cat((rotate(x[:, :, :whole], positions[:, :whole], base), x[:, :, whole:]), dim=2)


def attend(q: Any, k: Any, v: Any, window: int) -> Any:
    """Causal attention in a window, of queries that are the last of the keys, and fewer heads of keys."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    logits = (q.float() @ k.float().transpose(-1, -2)) / math.sqrt(q.shape[-1])
    last = torch.arange(k.shape[-2])[-q.shape[-2] :, None]
    keys = torch.arange(k.shape[-2])[None]
    seen = (keys <= last) & (keys > last - window)
    return (logits.masked_fill(~seen, float("-inf")).softmax(-1) @ v.float()).to(q.dtype)


def attend_heads_interleaved(q: Any, k: Any, v: Any, window: int) -> Any:
    groups = q.shape[1] // k.shape[1]
    return attend(q, k.repeat(1, groups, 1, 1), v.repeat(1, groups, 1, 1), window)
