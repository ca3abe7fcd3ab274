"""Learned tables, implemented with defects reported after the registry was written."""

import jax.numpy as jnp
import numpy as np
from planting import planted


@planted("the last row of the table is the one before", names=())
def learned_last_row():
    """The last row is never written, and reads as the one before."""

    def learned(positions, table, /, *, offset=0):
        return table[np.minimum(positions + offset, max(len(table) - 2, 0))]

    return learned


@planted("the offset is added twice", names=())
def learned_offset_twice():
    """OPT's offset is added by the caller and again by the module. Imagined, after the OPT offsets of transformers #36537."""

    def learned(positions, table, /, *, offset=0):
        return table[np.minimum(positions + 2 * offset, table.shape[0] - 1)]

    return learned


@planted("rows 0, 1, 2, ... whatever the positions", names=("rows-arange",), backend="jax")
def learned_rows_in_order():
    """Rows come in order whatever the positions: `start_index` ignored, keras-hub #1544."""

    def learned(positions, table, /, *, offset=0):
        count = positions.shape[-1] if positions.ndim else 1
        rows = table[offset : offset + count]
        return jnp.broadcast_to(rows if positions.ndim else rows[0], (*positions.shape, table.shape[-1]))

    return learned
