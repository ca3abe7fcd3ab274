"""
The mask of shifted windows. Source: microsoft/Swin-Transformer, commit f82860b, models/swin_transformer.py, lines 219-237:

    h_slices = (slice(0, -window_size), slice(-window_size, -shift_size), slice(-shift_size, None))

Each slice has a number. In a window, cells of different numbers do not attend to each other; without a shift there is no mask.
"""

from typing import Any

from .lists import over_pairs


def shifted_window_mask(q_positions: Any, k_positions: Any, *, size: int, window: int, shift: int) -> Any:
    """Return 1 where a query may attend to a key, else 0, shape (*B, Q, K)."""
    slices = (slice(0, -window), slice(-window, -shift), slice(-shift, None)) if shift else (slice(None),)
    number = {cell: count for count, piece in enumerate(slices) for cell in range(size)[piece]}
    return over_pairs(q_positions, k_positions, lambda i, j: i // window == j // window and number[i] == number[j])
