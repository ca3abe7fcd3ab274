"""
Learned absolute positions. Source: Gehring et al., arXiv:1705.03122, section 3.1 (p = (p_1, ..., p_m)).

The row of position m is row m + offset of the table: OPT and BART keep two rows in front (`offset=2`). With `clip` a row
before the first one is the first one, and a row after the last one is the last one: ProphetNet,
position_ids.clamp(0, max_length - 1).
"""

from typing import Any

from .lists import at, build, shape


def learned(positions: Any, table: Any, *, offset: int = 0, clip: bool = False) -> Any:
    """Return row ``positions + offset`` of `table`, shape (*positions.shape, D)."""

    def element(*index: int) -> Any:
        *where, lane = index
        row = at(positions, where) + offset
        if clip and row < 0:
            row = 0
        elif clip and row >= len(table):
            row = len(table) - 1
        return table[row][lane]

    return build((*shape(positions), shape(table)[1]), element)
