"""
Relative position bias of windows. Source: Liu et al., arXiv:2103.14030, equation (4), and microsoft/Swin-Transformer, commit
f82860b, models/swin_transformer.py, lines 91-104; the class token as in microsoft/unilm, beit/modeling_finetune.py.

"the relative position along each axis lies in the range [-M+1, M-1]": here all offsets are counted in order, and each is looked
up among them.
"""

from itertools import product
from typing import Any

from .lists import build, shape


def window_bias(table: Any, *, height: int, width: int, depth: int, order: str, class_token: bool) -> Any:
    """Return the bias, shape (H, N, N)."""
    window = (depth, height, width)
    numbers = {offset: n for n, offset in enumerate(product(*(range(1 - m, m) for m in window)))}
    cells = [None] * class_token + list(product(*(range(m) for m in window)))

    def row(i: int, j: int) -> int:
        query, key = (cells[i], cells[j]) if order == "query_minus_key" else (cells[j], cells[i])
        if query is not None and key is not None:
            return numbers[tuple(a - b for a, b in zip(query, key, strict=True))]
        return len(numbers) + (2 if i == j else 0 if i == 0 else 1)

    return build((shape(table)[1], len(cells), len(cells)), lambda h, i, j: table[row(i, j)][h])
