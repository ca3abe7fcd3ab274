"""
The relative positions of ReRoPE. Source: Su, kexue.fm/archives/9708: m - n inside the window, w outside. Inside is what has
|m - n| < w: the authors' code, bojone/rerope, rerope_patch.py, rectified_mask.
"""

from typing import Any

from .turned_products import relative


def rectified(m: int, n: int, window: int) -> int:
    """Return the relative position of query position `m` and key position `n`."""
    return m - n if -window < m - n < window else window


def rerope_distances(q_positions: Any, k_positions: Any, *, window: int) -> Any:
    """Return f(m, n) of every query and key."""
    return relative(lambda m, n: rectified(m, n, window), q_positions, k_positions)
