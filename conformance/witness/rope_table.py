"""
The cosines and sines of RoPE. Source: RoFormer, arXiv:2104.09864, equation (34): cos m theta_i and sin m theta_i.

The factor on both is YaRN's sqrt(1/t), arXiv:2309.00071, section 3.4: queries and keys are scaled through the table.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build_both, shape


def rope_table(positions: Any, inv_freq: Any, *, attention_factor: Any = 1.0) -> tuple[Any, Any]:
    """Return cos and sin, each of shape (*positions.shape, len(inv_freq))."""

    def waves(*index: int) -> list[Any]:
        *where, i = index
        return [wave * mpf(attention_factor) for wave in mp.cos_sin(at(positions, where) * inv_freq[i])]

    return build_both((*shape(positions), len(inv_freq)), waves)
