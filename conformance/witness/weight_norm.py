"""
Weight normalisation.

Salimans and Kingma, arXiv:1602.07868, equation (2): w = g / ||v|| v, with the Euclidean norm. fairseq's wav2vec2.py has
nn.utils.weight_norm(pos_conv, name="weight", dim=2): a norm over all axes but that one. A v of zeros stays 0.
"""

from typing import Any

from mpmath import mpf, sqrt

from .lists import build, shape


def weight_norm(v: Any, g: Any, *, axis: int) -> Any:
    """Return g v / ||v||, shape of v."""

    def norm(n: int) -> Any:
        total = mpf(0)
        for o, channels in enumerate(v):
            for c, taps in enumerate(channels):
                for k, number in enumerate(taps):
                    if (o, c, k)[axis] == n:
                        total += number**2
        return sqrt(total)

    def element(*index: int) -> Any:
        o, c, k = (n if along == axis else 0 for along, n in enumerate(index))
        length = norm(index[axis])
        return g[o][c][k] / length * v[index[0]][index[1]][index[2]] if length else mpf(0)

    return build(shape(v), element)
