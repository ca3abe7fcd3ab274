"""
The positional encoding generator of CPVT.

arXiv:2102.10882, section 3.3 and algorithm 1: proj = nn.Conv2d(dim, dim, k, 1, k // 2, groups=dim) with zero paddings, and
x = proj(cnn_feat) + cnn_feat. SegFormer's DWConv, arXiv:2105.15203, section 3.1, is proj alone.
"""

from typing import Any

from .lists import at, build, shape


def peg(x: Any, weight: Any, bias: Any, *, residual: bool) -> Any:
    """Return the convolution at every patch, and the patch itself where that is added; shape of x."""
    *lead, rows, columns, width = shape(x)
    size = shape(weight)[-1]

    def element(*index: int) -> Any:
        *where, i, j, c = index
        total = bias[c]
        for m in range(size):
            for n in range(size):
                row, column = i + m - size // 2, j + n - size // 2
                if 0 <= row < rows and 0 <= column < columns:
                    total += weight[c][0][m][n] * at(x, (*where, row, column, c))
        return total + at(x, index) if residual else total

    return build((*lead, rows, columns, width), element)
