"""
Rotary position embedding. Source: Su et al., RoFormer, arXiv:2104.09864, equations (14), (15) and (34).

The rotation is of `rotary_dim` lanes, the first ones or the last, with frequencies of that width (GPT-J, GPT-NeoX).
"""

from typing import Any

from .apply_rope import apply_rope
from .lists import shape
from .rope_frequencies import rope_frequencies
from .rope_table import rope_table


def rope(
    x: Any,
    positions: Any,
    *,
    layout: str,
    base: Any,
    rotary_dim: int | None = None,
    scaling: Any = None,
    length: int | None = None,
    inverse: bool = False,
    lanes: str = "leading",
) -> Any:
    """Return `x` (..., d) rotated by its positions, which broadcast against x.shape[:-1]."""
    r = shape(x)[-1] if rotary_dim is None else rotary_dim
    inv_freq, factor = rope_frequencies(r, base=base, scaling=scaling, length=length)
    cos, sin = rope_table(positions, inv_freq, attention_factor=factor)
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse, lanes=lanes)
