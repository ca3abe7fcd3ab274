"""
The cosines and sines of RoPE. Source: RoFormer, arXiv:2104.09864, equations (15) and (34): cos m theta_i and sin m theta_i.

The factor on both is that of YaRN, arXiv:2309.00071, section 3.4, and of LongRoPE's code.
"""

from typing import Any

from .rope_frequencies import rope_frequencies
from .rope_table import rope_table


def rope_cos_sin(positions: Any, dim: int, *, base: Any, scaling: Any = None, length: int | None = None) -> tuple[Any, Any]:
    """Return cos and sin, each of shape (*positions.shape, dim/2)."""
    inv_freq, factor = rope_frequencies(dim, base=base, scaling=scaling, length=length)
    return rope_table(positions, inv_freq, attention_factor=factor)
