"""
The scores of Self-Extend: products of queries and keys turned by the map of self_extend_distances, element by element.

The authors' code (datamllab/LongLM, self_extend_patch) chooses between two matrices of scores, of queries at m and keys at n,
and of queries at m // G + W - W // G and keys at n // G (or W / G): turned against each other by the differences.
"""

from typing import Any

from .self_extend_distances import self_extend_distances
from .turned_products import turned_products


def self_extend(
    q: Any, k: Any, q_positions: Any, k_positions: Any, *, group: int, window: int, rounding: str, **rotation: Any
) -> Any:
    """Return q . R_f(m, n) k, unscaled, shape (..., Q, K)."""
    relative = self_extend_distances(q_positions, k_positions, group=group, window=window, rounding=rounding)
    return turned_products(q, k, relative, **rotation)
