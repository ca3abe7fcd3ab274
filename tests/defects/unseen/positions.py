"""Positions from tokens, implemented with defects reported after the registry was written."""

import numpy as np
from planting import planted


@planted("ids below the padding count as padding", names=())
def token_ids_padding_below():
    """
    Every id up to the padding's counts as padding: `>` for `!=`. RoBERTa has ids 0 and 2 on both sides of its padding 1.

    Should be said: unexplained; tokens below the padding's id.
    """

    def positions_from_tokens(tokens, /, *, padding_idx):
        real = (tokens > padding_idx).astype(np.int64)
        return np.cumsum(real, axis=-1) * real + padding_idx

    return positions_from_tokens
