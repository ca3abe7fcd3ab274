"""
flash-attn: apply_rotary_emb_torch and the tables of RotaryEmbedding, its code in PyTorch; the Triton kernel is not asked.

Its rotary file is imported without the compiled parts, so the source alone is enough: install flash-attn, or put an unpacked
sdist or a checkout on the path: ``PYTHONPATH=flash_attn-2.8.3.post2 posref check flash_attn``. It needs einops besides.
"""

from typing import Any

import torch
from torch import Tensor

from ._rotary import APPLIED, frequencies, only_leading_forwards, supported, tables
from ._shared import only_package

PACKAGE = "flash-attn"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

rotary = only_package("flash_attn.layers.rotary", stubs={"flash_attn.ops.triton.rotary": {}})

supports = supported(APPLIED)


def rope_frequencies(dim: int, /, *, base: float, scaling: Any = None) -> tuple[Tensor, float]:
    """The buffer inv_freq of RotaryEmbedding."""
    return frequencies(rotary, dim, base, scaling)


def rope_cos_sin(
    positions: Tensor, dim: int, /, *, base: float, scaling: Any = None, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """The tables that RotaryEmbedding keeps, in the dtype of the queries."""
    return tables(rotary, positions, dim, base, scaling, dtype)


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str, lanes: str = "leading", inverse: bool = False) -> Tensor:
    """apply_rotary_emb_torch of all tokens as one sequence of one head."""
    only_leading_forwards(x, cos, layout, lanes, inverse)
    pairs = cos.shape[-1]
    rows = (torch.broadcast_to(t, (*x.shape[:-1], pairs)).reshape(-1, pairs).to(x.dtype) for t in (cos, sin))
    flat = x.reshape(1, -1, 1, x.shape[-1])
    return rotary.apply_rotary_emb_torch(flat, *rows, interleaved=layout == "interleaved").reshape(x.shape)


def rope(
    x: Tensor, positions: Tensor, /, *, layout: str, base: float, rotary_dim: int | None = None, scaling: Any = None,
    lanes: str = "leading", inverse: bool = False,
) -> Tensor:  # fmt: skip
    """RotaryEmbedding's tables in the dtype of `x`, then apply_rotary_emb_torch."""
    dim = x.shape[-1] if rotary_dim is None else rotary_dim
    cos, sin = rope_cos_sin(positions, dim, base=base, scaling=scaling, dtype=x.dtype)
    return apply_rope(x, cos, sin, layout=layout, lanes=lanes, inverse=inverse)


# Read and run in flash-attn 2.8.3.post2 (sdist) with torch 2.13.0 on a CPU.
NOTES = (
    "apply_rotary_emb_torch multiplies in the dtype of the queries, by tables in that dtype (flash_attn/layers/rotary.py:33, "
    "415); the Triton kernel, which apply_rotary_emb calls, is not asked.",
    "RotaryEmbedding with scale_base is xPos about half the length of the table (layers/rotary.py:420), made anew when "
    "a longer sequence comes: keys cached before then have another middle. It is not asked, as positions beyond twice the "
    "middle have no row.",
)
