"""Flash Linear Attention: RotaryEmbedding's tables, and its Triton kernel, run on a CPU by Triton's interpreter."""

from typing import Any

import torch
from torch import Tensor

from ._rotary import APPLIED, frequencies, only_leading_forwards, supported, tables
from ._triton import CLAIMS, DTYPES, of_heads, rows_of  # before Triton is imported

# isort: split
from fla.modules.rotary import ops as rotary

PACKAGE = "fla-core"
backend, dtypes, claims = "torch", DTYPES, CLAIMS

del rotary.rotary_embedding_kernel.configs[1:]  # to choose among several it asks a GPU

supports = supported({**APPLIED, "empty": False, "gradient": ["x"]})


def rope_frequencies(dim: int, /, *, base: float, scaling: Any = None) -> tuple[Tensor, float]:
    """The buffer inv_freq of RotaryEmbedding."""
    return frequencies(rotary, dim, base, scaling)


def rope_cos_sin(
    positions: Tensor, dim: int, /, *, base: float, scaling: Any = None, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """The tables that RotaryEmbedding keeps, in the dtype of the queries."""
    return tables(rotary, positions, dim, base, scaling, dtype)


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str, lanes: str = "leading", inverse: bool = False) -> Tensor:
    """rotary_embedding of all tokens as one sequence of three heads, with seqlen_offsets of one row."""
    only_leading_forwards(x, cos, layout, lanes, inverse)
    rows, interleaved = [rows_of(t, x).to(x.dtype) for t in (cos, sin)], layout == "interleaved"
    return of_heads(x, lambda heads: rotary.rotary_embedding(heads, *rows, interleaved=interleaved, seqlen_offsets=1))


def rope(
    x: Tensor, positions: Tensor, /, *, layout: str, base: float, rotary_dim: int | None = None, scaling: Any = None,
    lanes: str = "leading", inverse: bool = False,
) -> Tensor:  # fmt: skip
    """RotaryEmbedding's tables in the dtype of `x`, then rotary_embedding."""
    dim = x.shape[-1] if rotary_dim is None else rotary_dim
    cos, sin = rope_cos_sin(positions, dim, base=base, scaling=scaling, dtype=x.dtype)
    return apply_rope(x, cos, sin, layout=layout, lanes=lanes, inverse=inverse)


# Read and run in fla-core 0.6.0 with triton 3.9.0 and torch 2.13.0 on a CPU; paths in fla/modules/rotary.
NOTES = (
    "The kernel runs in Triton's interpreter (TRITON_INTERPRET=1), not compiled, with the first of its autotuner's "
    "configurations. The interpreter truncates to bfloat16, so bfloat16 is not asked.",
    "The kernel computes in float32 and rounds once (ops.py:83). It refuses tables in another dtype than the queries "
    "(ops.py:195): they are cast to it.",
    "RotaryEmbedding with scale_base is xPos about half the length of the table (ops.py:472), which is made anew when a longer "
    "sequence comes: keys cached before then have another middle. It is not asked.",
)
