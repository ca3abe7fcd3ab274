"""Correct code of a PyTorch user."""

import torch
from torch import Tensor, nn

import posref


class Attention(nn.Module):
    table: nn.Parameter

    def forward(self, q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
        inv_freq, factor = posref.rope_frequencies(q.shape[-1], base=10_000.0, xp=torch, device=q.device)
        cos, sin = posref.rope_table(positions, inv_freq, attention_factor=factor, dtype=torch.float32)
        q, k = (posref.apply_rope(x, cos, sin, layout="half") for x in (q, k))
        bias = posref.t5_bias(positions, positions, self.table, bidirectional=True)
        return posref.attention(q, k, v, bias=bias)


def from_the_host(x: Tensor, positions: Tensor) -> Tensor:
    inv_freq, factor = posref.rope_frequencies(x.shape[-1], base=10_000.0)  # NumPy's, also here
    cos, sin = posref.rope_table(positions, inv_freq, attention_factor=factor)
    return posref.apply_rope(x, cos, sin, layout="interleaved")


def by_config(x: Tensor, config: dict[str, object]) -> Tensor:
    return posref.rope(x, torch.arange(x.shape[-2]), **posref.rope_from_config(config))


def slopes() -> Tensor:
    return posref.alibi_slopes(8, xp=torch)


def of_parameters(positions: Tensor) -> Tensor:
    return posref.learned(positions, nn.Parameter(torch.ones(4, 2)))
