"""
The rotation as a matrix. Source: RoFormer, arXiv:2104.09864, equation (15): blocks on the diagonal,

    ( cos m theta_i   -sin m theta_i )
    ( sin m theta_i    cos m theta_i )

The columns of a block are the lanes that it reads and the rows those that it writes; the paper's are both (2i, 2i+1).
"""

from typing import Any

from mpmath import mpf

from .apply_rope import pair
from .lists import at, build, shape
from .rope_frequencies import rope_frequencies
from .rope_table import rope_table


def rotation_matrix(position: Any, dim: int, *, layout: str, base: Any, scaling: Any = None, length: int | None = None) -> Any:
    """Return M of shape (*position.shape, dim, dim) with ``M x == rope(x)``, the attention factor included."""
    inv_freq, factor = rope_frequencies(dim, base=base, scaling=scaling, length=length)
    cos, sin = rope_table(position, inv_freq, attention_factor=factor)

    def matrix(*where: int) -> list[list[Any]]:
        m = [[mpf(0)] * dim for _ in range(dim)]
        for i in range(dim // 2):
            (a, b), (c, e) = pair(layout, i, dim)
            cosine, sine = at(cos, (*where, i)), at(sin, (*where, i))
            m[c][a], m[c][b] = cosine, -sine
            m[e][a], m[e][b] = sine, cosine
        return m

    return build(shape(position), matrix)
