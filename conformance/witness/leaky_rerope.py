"""
The scores of Leaky ReRoPE: products of queries and keys turned by the map of leaky_rerope_distances, element by element.

The authors' code (bojone/rerope, leaky_rerope_patch.py) chooses between two matrices of scores, of queries at m and keys at n,
and of queries at (m + w(k - 1))/k and keys at n/k: turned against each other by m - n and by w + (m - n - w)/k.
"""

from typing import Any

from .leaky_rerope_distances import leaky_rerope_distances
from .turned_products import turned_products


def leaky_rerope(q: Any, k: Any, q_positions: Any, k_positions: Any, *, window: int, factor: int, **rotation: Any) -> Any:
    """Return q . R_f(m, n) k, unscaled, shape (..., Q, K)."""
    relative = leaky_rerope_distances(q_positions, k_positions, window=window, factor=factor)
    return turned_products(q, k, relative, **rotation)
