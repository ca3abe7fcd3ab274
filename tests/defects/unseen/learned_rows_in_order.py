"""Rows come in order whatever the positions: `start_index` ignored, keras-hub #1544."""

import jax.numpy as jnp

backend = "jax"
DEFECT = "rows 0, 1, 2, ... whatever the positions"
NAMES = ("rows-arange",)


def learned(positions, table, /, *, offset=0):
    count = positions.shape[-1] if positions.ndim else 1
    rows = table[offset : offset + count]
    return jnp.broadcast_to(rows if positions.ndim else rows[0], (*positions.shape, table.shape[-1]))
