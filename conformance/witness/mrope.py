"""
M-RoPE: rotary embedding whose pairs turn with time, height or width. Source: Qwen2-VL, arXiv:2409.12191, section 2.1.

As transformers' apply_multimodal_rotary_pos_emb does it: the frequencies of RoPE, each with its own axis's position.
"""

from typing import Any

from .apply_rope import apply_rope
from .axial_table import axial_table
from .rope_frequencies import rope_frequencies


def mrope(
    x: Any,
    positions: Any,
    *,
    sections: Any,
    arrangement: str,
    layout: str,
    base: Any,
    scaling: Any = None,
    length: int | None = None,
    inverse: bool = False,
) -> Any:
    """Return `x` (..., d) rotated by positions (axes, ...)."""
    inv_freq, factor = rope_frequencies(2 * sum(sections), base=base, scaling=scaling, length=length)
    cos, sin = axial_table(positions, inv_freq, sections=sections, arrangement=arrangement, attention_factor=factor)
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse)
