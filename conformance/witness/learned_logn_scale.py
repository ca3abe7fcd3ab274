"""
Learned log-n attention. Sources: transformers 5.23.0, MistralLarge4TextSoftmaxScaling,

    log_pos = (position_ids + 1).float().log()
    scale[None, :, None] * log_pos[:, None, :] + bias[None, :, None]

and SSMax, arXiv:2501.19399: s log n, n the number of keys. A query before position 0 counts as one at 0.
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def learned_logn_scale(positions: Any, scale: Any, bias: Any) -> Any:
    """Return the factor of every head and query."""
    *batch, tokens = shape(positions)

    def element(*index: int) -> Any:
        *row, head, token = index
        position = at(positions, [*row, token])
        return scale[head] * mp.log(position + 1 if position > 0 else 1) + bias[head]

    return build((*batch, len(scale), tokens), element)
