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


@planted("the second coordinate limited by the first table", names=())
def axial_learned_second_by_first_size():
    """
    Columns are limited by the number of rows of the other table, which no square table shows. Imagined, after a copied line.

    Should be said: unexplained; second coordinates beyond the first table's rows.
    """

    def axial_learned(positions, first, second, /, *, combine):
        one, two = positions.astype(np.int64)
        e, f = first[one], second[np.minimum(two, first.shape[0] - 1)]
        return np.concatenate([e, f], axis=-1) if combine == "concat" else e + f

    return axial_learned


@planted("rows wrap at 256", names=())
def learned_rows_uint8():
    """
    Rows are looked up by an index of 8 bits, which wraps at 256. Index types of 8 bits are met on accelerators.

    Should be said: unexplained (or wrapped at 256): positions from 256 on.
    """

    def learned(positions, table, /, *, offset=0):
        return table[(positions.astype(np.int64) + offset) % 256]

    return learned


@planted("antialias along the first axis alone", names=())
def resample_columns_not_antialiased():
    """
    Only rows are filtered before they are made fewer; columns are interpolated plainly. Imagined: a separable filter, halfway.

    Should be said: unexplained; cases with antialias that have fewer columns.
    """

    def weights(n, m, antialias):
        step = n / m
        r = abs(np.arange(n) - (step * (np.arange(m)[:, None] + 0.5) - 0.5))
        if not antialias:
            centre = np.clip(step * (np.arange(m)[:, None] + 0.5) - 0.5, 0, n - 1)
            return np.maximum(1 - abs(np.arange(n) - centre), 0)
        w = np.maximum(1 - r / max(step, 1), 0)
        return w / w.sum(axis=1, keepdims=True)

    def resample(table, size, /, *, old_size, prefix, method, align_corners, antialias):
        if method != "linear" or align_corners or len(size) != 2:
            raise NotImplementedError(method)
        cells = table[prefix:].astype(np.float64).reshape(*old_size, -1)
        rows, columns = weights(old_size[0], size[0], antialias), weights(old_size[1], size[1], False)
        cells = np.einsum("ij,kl,jld->ikd", rows, columns, cells).reshape(-1, table.shape[1])
        return np.concatenate([table[:prefix], cells.astype(table.dtype)])

    return resample


@planted("rows of cells reversed", names=())
def resample_flipped_rows():
    """
    Rows come out from bottom to top: a picture's origin in another corner. Imagined.

    Should be said: unexplained, all cases with more than one row of cells.
    """

    def weights(n, m):
        centre = np.clip(n / m * (np.arange(m)[:, None] + 0.5) - 0.5, 0, n - 1)
        return np.maximum(1 - abs(np.arange(n) - centre), 0)

    def resample(table, size, /, *, old_size, prefix, method, align_corners, antialias):
        if method != "linear" or align_corners or antialias or len(size) != 2:
            raise NotImplementedError(method)
        cells = table[prefix:].astype(np.float64).reshape(*old_size, -1)
        cells = np.einsum("ij,kl,jld->ikd", weights(old_size[0], size[0])[::-1], weights(old_size[1], size[1]), cells)
        return np.concatenate([table[:prefix], cells.reshape(-1, table.shape[1]).astype(table.dtype)])

    return resample
