"""
Rows of a projection from one pair layout to the other.

transformers, convert_llama_weights_to_hf.py: permute(w, n_heads, dim1, dim2) is
    w.view(n_heads, dim1 // n_heads // 2, 2, dim2).transpose(1, 2).reshape(dim1, dim2)
which takes Meta's pairs (2i, 2i + 1) to pairs (i, i + d/2). Lanes past rotary_dim stay.
"""

from typing import Any


def permute_qk_weights(weight: Any, *, heads: int, rotary_dim: int | None = None, source: str, target: str) -> Any:
    """Return the rows in their new order."""
    width = len(weight) // heads
    r = width if rotary_dim is None else rotary_dim
    old_half, new_half = source == "half", target == "half"
    out = list(weight)
    for h in range(heads):
        for i in range(r // 2):
            old = (i, i + r // 2) if old_half else (2 * i, 2 * i + 1)
            new = (i, i + r // 2) if new_half else (2 * i, 2 * i + 1)
            for was, now in zip(old, new, strict=True):
                out[h * width + now] = weight[h * width + was]
    return out
