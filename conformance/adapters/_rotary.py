"""The tables of RotaryEmbedding, which flash-attn and Flash Linear Attention have alike, for the adapters of both."""

from typing import Any

import torch
from torch import Tensor

from ._shared import from_table, lacks

ROWS = 1 << 20  # of a table of which a few rows are looked up
BASE = {"scaling": [None], "length": ["default"]}
TABLE = {**BASE, "numbers": ["integers"], "negative": False, "position": {"max": ROWS - 1}}
APPLIED: dict[str, Any] = {
    "layout": ["half", "interleaved"],
    "inverse": [False],
    "not": [{"lanes": "trailing", "partial": True}],
}


def supported(applied: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return `supports` of an adapter that makes these tables and applies them as `applied` says."""
    return {"rope_frequencies": BASE, "rope_cos_sin": TABLE, "apply_rope": applied, "rope": {**TABLE, **applied}}


def frequencies(module: Any, dim: int, base: float, scaling: Any) -> tuple[Tensor, float]:
    """The buffer inv_freq of RotaryEmbedding, of the library's module `module`."""
    if scaling is not None:
        lacks(f"no {scaling!r}")
    return module.RotaryEmbedding(dim, base=base).inv_freq, 1.0


def tables(
    module: Any, positions: Tensor, dim: int, base: float, scaling: Any, dtype: torch.dtype | None
) -> tuple[Tensor, Tensor]:
    """The tables that RotaryEmbedding keeps, in the dtype of the queries."""
    if scaling is not None:
        lacks(f"no {scaling!r}")
    rotary = module.RotaryEmbedding(dim, base=base)

    def made(rows: int) -> tuple[Tensor, Tensor]:
        rotary._update_cos_sin_cache(rows, dtype=dtype or torch.get_default_dtype())
        return rotary._cos_cached, rotary._sin_cached

    cos, sin = from_table(made, positions, rows=ROWS)
    return cos, sin


def only_leading_forwards(x: Tensor, cos: Tensor, layout: str, lanes: str, inverse: bool) -> None:
    """Refuse what both libraries lack."""
    if layout not in ("half", "interleaved") or inverse or (lanes == "trailing" and 2 * cos.shape[-1] != x.shape[-1]):
        lacks(f"layout {layout!r}, lanes {lanes!r}, inverse {inverse}: leading channels, forwards")
