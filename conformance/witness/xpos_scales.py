"""
The decay of xPos. Source: Sun et al., arXiv:2212.10554, and the authors' torchscale, component/xpos_relative_position.py:

    scale = (arange(0, head_dim, 2) + 0.4 * head_dim) / (1.4 * head_dim)
    scale ** (position / scale_base), positions counted from the middle; 1 / scale for keys ("downscale")
"""

from typing import Any

from mpmath import mpf

from .lists import at, build, shape


def xpos_scales(positions: Any, dim: int, *, role: str, centre: int, scale_base: Any = 512.0, gamma: Any = 0.4) -> Any:
    """Return the scales, of shape (*positions.shape, dim/2)."""
    gamma = mpf(gamma)

    def element(*index: int) -> Any:
        *where, i = index
        zeta = (2 * i + gamma * dim) / ((1 + gamma) * dim)
        grown = zeta ** ((at(positions, where) - centre) / mpf(scale_base))
        return 1 / grown if role == "key" else grown

    return build((*shape(positions), dim // 2), element)
