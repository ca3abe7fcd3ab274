"""
Learned absolute positions. Source: Gehring et al., arXiv:1705.03122, section 3.1 (p = (p_1, ..., p_m)).

The row of position m is row m + offset of the table: OPT and BART keep two rows in front (`offset=2`).
"""

from typing import Any

from .lists import at, build, shape


def learned(positions: Any, table: Any, *, offset: int = 0) -> Any:
    """Return row ``positions + offset`` of `table`, shape (*positions.shape, D)."""

    def element(*index: int) -> Any:
        *where, lane = index
        return table[at(positions, where) + offset][lane]

    return build((*shape(positions), shape(table)[1]), element)
