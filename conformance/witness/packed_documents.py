"""
Sequences of a packed row. Source: transformers 5.23.0, masking_utils.py, find_packed_sequence_indices: a sequence begins where
a position is not one more than the position before it.
"""

from typing import Any

from .lists import at, build, shape


def packed_documents(positions: Any) -> Any:
    """Return the number of the sequence of every token, from 0."""

    def element(*index: int) -> int:
        *row, place = index
        line = [at(positions, (*row, t)) for t in range(place + 1)]
        return sum(1 for t in range(1, len(line)) if line[t] != line[t - 1] + 1)

    return build(shape(positions), element)
