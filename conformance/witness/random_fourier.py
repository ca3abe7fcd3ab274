"""
Random Fourier features. Source: Tancik et al., arXiv:2006.10739, section 4:

    gamma(v) = [cos(2 pi B v), sin(2 pi B v)]

SAM (transformers, SamPositionalEmbedding) has [sin, cos]:

    coordinates = coordinates @ self.positional_embedding
    coordinates = 2 * np.pi * coordinates
    return torch.cat([torch.sin(coordinates), torch.cos(coordinates)], dim=-1)
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def random_fourier(x: Any, matrix: Any, *, layout: str) -> Any:
    """Return the features of the points x, shape (*P, 2m)."""
    *places, c = shape(x)
    m = shape(matrix)[1]
    first, second = (mp.sinpi, mp.cospi) if layout == "sin_cos" else (mp.cospi, mp.sinpi)

    def element(*index: int) -> Any:
        *where, column = index
        wave, i = (first, column) if column < m else (second, column - m)
        return wave(2 * sum(at(x, (*where, j)) * matrix[j][i] for j in range(c)))

    return build((*places, 2 * m), element)
