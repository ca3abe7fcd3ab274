"""RoPE-Mixed on queries or keys. Source: RoPE-ViT, arXiv:2403.13298, section 3: pairs are multiplied by exp(i angle)."""

from typing import Any

from .apply_rope import apply_rope
from .mixed_table import mixed_table


def mixed_rope(x: Any, positions: Any, frequencies: Any, *, layout: str, inverse: bool = False) -> Any:
    """Return `x` (..., d) rotated by positions (axes, ...) times frequencies (axes, ..., pairs), summed over axes."""
    cos, sin = mixed_table(positions, frequencies)
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse)
