"""
Positions of padded rows. Source: transformers 5.23.0, generation/utils.py, line 906: the sum of the mask up to each token, less
1, and a fixed number at padding.
"""

from typing import Any

from .lists import at, build, shape


def positions_from_mask(mask: Any, *, padding: int) -> Any:
    """Return the number of tokens before each one in its row."""

    def element(*index: int) -> int:
        *row, place = index
        if not at(mask, index):
            return padding
        return sum(1 for before in range(place) if at(mask, (*row, before)))

    return build(shape(mask), element)
