"""
RoBERTa's rows. Source: fairseq, fairseq/utils.py, make_positions: symbols that are not padding are numbered from
padding_idx + 1; padding is ignored and stays padding_idx.
"""

from typing import Any

from .lists import at, build, shape


def positions_from_tokens(tokens: Any, *, padding_idx: int) -> Any:
    """Return the row of the table for every token."""

    def element(*index: int) -> int:
        *row, place = index
        number = padding_idx
        for t in range(place + 1):
            if at(tokens, (*row, t)) != padding_idx:
                number += 1
        return padding_idx if at(tokens, index) == padding_idx else number

    return build(shape(tokens), element)
