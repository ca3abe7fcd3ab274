"""
The relative positions of Leaky ReRoPE. Source: Su, kexue.fm/archives/9708: beyond the window a token counts 1/k,

    0, 1, ..., w - 1, w, w + 1/k, w + 2/k, ...

Inside is what has |m - n| < w: the authors' code, bojone/rerope, leaky_rerope_patch.py, rectified_mask.
"""

from typing import Any

from mpmath import mpf

from .turned_products import relative


def leaky(m: int, n: int, window: int, factor: int) -> Any:
    """Return the relative position of query position `m` and key position `n`."""
    if -window < m - n < window:
        return mpf(m - n)
    return mpf(window * factor + (m - n - window)) / factor


def leaky_rerope_distances(q_positions: Any, k_positions: Any, *, window: int, factor: int) -> Any:
    """Return f(m, n) of every query and key."""
    return relative(lambda m, n: leaky(m, n, window, factor), q_positions, k_positions)
