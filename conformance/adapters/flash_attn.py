"""
flash-attn: apply_rotary_emb_torch and the tables of RotaryEmbedding, its code in PyTorch; the Triton kernel is not asked.

Its rotary file is imported without the compiled parts, so the source alone is enough: install flash-attn, or put an unpacked
sdist or a checkout on the path: ``PYTHONPATH=flash_attn-2.8.3.post2 posref check flash_attn``. It needs einops besides.
"""

from typing import Any

import torch
from torch import Tensor

from ._shared import from_table, lacks, only_package

PACKAGE = "flash-attn"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}
ROWS = 1 << 20  # of a table of which a few rows are looked up

rotary = only_package("flash_attn.layers.rotary", stubs={"flash_attn.ops.triton.rotary": {}})

TABLE = {"numbers": ["integers"], "negative": False, "scaling": [None]}
APPLIED: dict[str, Any] = {
    "layout": ["half", "interleaved"],
    "inverse": [False],
    "not": [{"lanes": "trailing", "partial": True}],
}

supports: dict[str, dict[str, Any]] = {
    "rope_frequencies": {"scaling": [None]},
    "rope_cos_sin": TABLE,
    "apply_rope": APPLIED,
    "rope": {**TABLE, **APPLIED},
}


def rope_frequencies(dim: int, /, *, base: float, scaling: Any = None) -> tuple[Tensor, float]:
    """The buffer inv_freq of RotaryEmbedding."""
    if scaling is not None:
        lacks(f"no {scaling!r}")
    return rotary.RotaryEmbedding(dim, base=base).inv_freq, 1.0


def rope_cos_sin(
    positions: Tensor, dim: int, /, *, base: float, scaling: Any = None, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """The tables that RotaryEmbedding keeps, in the dtype of the queries."""
    if scaling is not None:
        lacks(f"no {scaling!r}")
    module = rotary.RotaryEmbedding(dim, base=base)

    def tables(rows: int) -> tuple[Tensor, Tensor]:
        module._update_cos_sin_cache(rows, dtype=dtype or torch.get_default_dtype())
        return module._cos_cached, module._sin_cached

    cos, sin = from_table(tables, positions, rows=ROWS)
    return cos, sin


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str, lanes: str = "leading", inverse: bool = False) -> Tensor:
    """apply_rotary_emb_torch of all tokens as one sequence of one head."""
    pairs = cos.shape[-1]
    if layout not in ("half", "interleaved") or inverse or (lanes == "trailing" and 2 * pairs != x.shape[-1]):
        lacks(f"layout {layout!r}, lanes {lanes!r}, inverse {inverse}: leading channels, forwards")
    tables = (torch.broadcast_to(t, (*x.shape[:-1], pairs)).reshape(-1, pairs).to(x.dtype) for t in (cos, sin))
    flat = x.reshape(1, -1, 1, x.shape[-1])
    return rotary.apply_rotary_emb_torch(flat, *tables, interleaved=layout == "interleaved").reshape(x.shape)


def rope(
    x: Tensor, positions: Tensor, /, *, layout: str, base: float, rotary_dim: int | None = None, scaling: Any = None,
    lanes: str = "leading", inverse: bool = False,
) -> Tensor:  # fmt: skip
    """RotaryEmbedding's tables in the dtype of `x`, then apply_rotary_emb_torch."""
    dim = x.shape[-1] if rotary_dim is None else rotary_dim
    tables = rope_cos_sin(positions, dim, base=base, scaling=scaling, dtype=x.dtype)
    return apply_rope(x, *tables, layout=layout, lanes=lanes, inverse=inverse)


# Read and run in flash-attn 2.8.3.post2 (sdist) with torch 2.13.0 on a CPU.
NOTES = (
    "apply_rotary_emb_torch multiplies in the dtype of the queries, by tables in that dtype (flash_attn/layers/rotary.py:33, "
    "415); the Triton kernel, which apply_rotary_emb calls, is not asked.",
    "RotaryEmbedding with scale_base is xPos about half the length of the table (layers/rotary.py:420), made anew when "
    "a longer sequence comes: keys cached before then have another middle. It is not asked, as positions beyond twice the "
    "middle have no row.",
)
