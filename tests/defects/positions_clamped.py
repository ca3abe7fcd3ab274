"""Positions past the table read its last row; a 4096-row cos/sin cache and a clamped gather, pegainfer #220."""

import numpy as np

DEFECT = "positions clamped at 4095"
NAMES = ("positions-table-4096",)


def rope(x, positions, /, *, layout, base, max_position=4096):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    d = x.shape[-1]
    inv_freq = 1.0 / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
    table = np.outer(np.arange(max_position, dtype=np.float32), inv_freq)
    angle = np.take(table, positions.astype(np.int64), axis=0, mode="clip")
    out = np.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * np.cos(angle) - x[..., 1::2] * np.sin(angle)
    out[..., 1::2] = x[..., 1::2] * np.cos(angle) + x[..., 0::2] * np.sin(angle)
    return out
