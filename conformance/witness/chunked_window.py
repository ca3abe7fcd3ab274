"""
Attention within chunks. Source: meta-llama/llama-models, models/llama4/model.py, create_chunked_attention_mask:

    block_pos = abs(arange(n)[None] // chunk - arange(n)[:, None] // chunk)
    token_pos = arange(n)[None] - arange(n)[:, None]
    mask = (block_pos == 0) & (token_pos <= 0)

Here the bounds of the query's chunk are counted up to from 0, or down to it, and looked between.
"""

from typing import Any

from .lists import over_pairs


def chunked_window(q_positions: Any, k_positions: Any, *, chunk_size: int, sides: str) -> Any:
    """Return 1 where a query may attend to a key, else 0, shape (*B, Q, K)."""

    def together(i: int, j: int) -> bool:
        start = i - i % chunk_size  # Python's remainder is never negative
        end = start + chunk_size if sides == "both" else i + 1
        return start <= j < end

    return over_pairs(q_positions, k_positions, together)
