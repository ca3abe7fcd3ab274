"""
Rows of a projection from one pair layout to the other.

transformers, convert_llama_weights_to_hf.py: permute(w, n_heads, dim1, dim2) is
    w.view(n_heads, dim1 // n_heads // 2, 2, dim2).transpose(1, 2).reshape(dim1, dim2)
which takes Meta's pairs (2i, 2i + 1) to pairs (i, i + d/2). Lanes past rotary_dim stay.
"""

from typing import Any

from .lists import at, build, shape


def permute_qk_weights(weight: Any, *, heads: int, rotary_dim: int | None = None, source: str, target: str) -> Any:
    """Return the rows in their new order."""
    sizes = shape(weight)
    width = sizes[0] // heads
    r = width if rotary_dim is None else rotary_dim
    comes_from: dict[int, int] = {}
    for i in range(r // 2):
        old = (i, i + r // 2) if source == "half" else (2 * i, 2 * i + 1)
        new = (i, i + r // 2) if target == "half" else (2 * i, 2 * i + 1)
        comes_from.update(zip(new, old, strict=True))

    def element(row: int, *rest: int) -> Any:
        head, lane = divmod(row, width)
        return at(weight, (head * width + comes_from.get(lane, lane), *rest))

    return build(sizes, element)
