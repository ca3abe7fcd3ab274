"""
The relative shift. Source: Dai et al., arXiv:1901.02860, appendix B: the rows of B are left-shifted versions of those of B~; in
their code by one row of zeros: kimiyoung/transformer-xl, commit 44781ed, pytorch/mem_transformer.py, _rel_shift.

Here every cell is looked up: row i moves by one place less than the row before it, and beyond a row's end stand a zero and the
next row.
"""

from typing import Any

from mpmath import mpf

from .lists import at, build, shape


def relative_shift(x: Any) -> Any:
    """Return the cells of `x`, shape (..., Q, P), where the shift puts them."""
    (*lead, queries, distances) = shape(x)

    def element(*index: int) -> Any:
        *batch, row, column = index
        column += queries - 1 - row
        while column > distances:  # past the zero before the next row
            row, column = row + 1, column - distances - 1
        return mpf(0) if column == distances else at(x, (*batch, row, column))

    return build((*lead, queries, distances), element)
