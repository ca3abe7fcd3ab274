"""
Angles of RoPE-Mixed. Source: RoPE-ViT, arXiv:2403.13298, section 3, mixed learnable frequency:

    R(n, t) = exp(i (theta^x_t p^x_n + theta^y_t p^y_n))

as compute_mixed_cis of the authors' code; there for every layer and head.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, broadcast, build_both, shape


def mixed_table(positions: Any, frequencies: Any) -> tuple[Any, Any]:
    """Return cos and sin of positions (axes, *P) and frequencies (axes, *F, pairs)."""
    *head, pairs = shape(frequencies[0])
    rows = broadcast(shape(positions[0]), head)

    def waves(*index: int) -> Any:
        total = mpf(0)
        for place, theta in zip(positions, frequencies, strict=True):
            total += at(place, index[:-1]) * at(theta, index)
        return mp.cos_sin(total)

    return build_both((*rows, pairs), waves)
