"""
flash-attn: apply_rotary_emb, whose Triton kernel is run on a CPU by Triton's interpreter, forward and backward.

Its rotary files are imported without the compiled parts, so the source alone is enough, as for the adapter flash_attn.
"""

import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from ._shared import lacks, only_package
from ._triton import CLAIMS, DTYPES, of_heads, rows_of  # before Triton is imported

PACKAGE = "flash-attn"
backend, dtypes, claims = "torch", DTYPES, CLAIMS

rotary = only_package("flash_attn.layers.rotary")


class _WithoutDevices(SimpleNamespace):
    """torch, but choosing a GPU does nothing, and a kernel is itself: the interpreter's has no wrapper."""

    cuda = SimpleNamespace(device=nullcontext)
    library = SimpleNamespace(wrap_triton=lambda kernel: kernel)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


vars(sys.modules["flash_attn.ops.triton.rotary"])["torch"] = _WithoutDevices()

supports: dict[str, dict[str, Any]] = {
    "apply_rope": {
        "empty": False,
        "layout": ["half", "interleaved"],
        "inverse": [False],
        "gradient": ["x"],
        "not": [{"lanes": "trailing", "partial": True}],
    }
}


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str, lanes: str = "leading", inverse: bool = False) -> Tensor:
    """apply_rotary_emb of all tokens as one sequence of three heads, with seqlen_offsets of one row."""
    if layout not in ("half", "interleaved") or inverse or (lanes == "trailing" and 2 * cos.shape[-1] != x.shape[-1]):
        lacks(f"layout {layout!r}, lanes {lanes!r}, inverse {inverse}: leading channels, forwards")
    tables, interleaved = [rows_of(t, x) for t in (cos, sin)], layout == "interleaved"
    return of_heads(x, lambda heads: rotary.apply_rotary_emb(heads, *tables, interleaved=interleaved, seqlen_offsets=1))


# Read and run in flash-attn 2.8.3.post2 (sdist) with triton 3.9.0 and torch 2.13.0 on a CPU.
NOTES = (
    "The kernel runs in Triton's interpreter (TRITON_INTERPRET=1), not compiled. It truncates to bfloat16, so bfloat16 is not "
    "asked. torch.cuda.device and torch.library.wrap_triton do nothing here.",
    "The kernel computes in float32 and rounds once (flash_attn/ops/triton/rotary.py:73), also where apply_rotary_emb_torch "
    "rounds every product.",
    "Tokens at a position beyond the table keep their values without an error if offsets are a tensor "
    "(flash_attn/ops/triton/rotary.py:72).",
)
