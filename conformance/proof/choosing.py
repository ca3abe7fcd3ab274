"""Which rows of a call are judged: all where that is quick, else those where kernels break and those that look farthest off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..model import Arrays
from ..suite.rows import Key, Rows, Selection

TILES = tuple(16 << k for k in range(9))  # 16 to 4096
DRAWN, FAR = 96, 32
LEAST = 2  # indices of an axis, since an axis of one may mean another shape


class Budget(NamedTuple):
    """How many values may be judged, and how many terms of their sums."""

    values: int
    terms: int


def cost(rows: Rows, results: Arrays, selection: Mapping[Key, npt.NDArray[np.int64]]) -> Budget:
    """Return the number of values of a selection, and of the terms of their sums."""
    kept = math.prod(len(selection[key]) / max(size, 1) for key, size in rows.sizes.items() if key in selection)
    values = round(kept * sum(x.size for x in results.values()))
    return Budget(values, values * rows.terms)


def fits(rows: Rows, results: Arrays, selection: Mapping[Key, npt.NDArray[np.int64]], budget: Budget) -> bool:
    """Return whether a selection is within a budget."""
    return all(found <= most for found, most in zip(cost(rows, results, selection), budget, strict=True))


def choose(rows: Rows, outputs: Arrays, near: Arrays, budget: Budget) -> Selection:
    """
    Return the indices to judge along every row axis; of an axis that is not among them all.

    First come the rows whose outputs are farthest from `near`, which is close to the truth. That they look right proves
    nothing, so the first and last rows, those around multiples of usual tile sizes and drawn ones are judged too.
    """
    if fits(rows, near, {}, budget):
        return {}
    far = farthest(rows, outputs, near)
    wanted = {key: _in_order(size, far.get(key, ())) for key, size in rows.sizes.items()}
    while wanted and not fits(rows, near, wanted, budget):
        longest = max(wanted, key=lambda key: len(wanted[key]))
        if len(wanted[longest]) <= LEAST:
            break
        wanted[longest] = wanted[longest][: max(LEAST, len(wanted[longest]) * 3 // 4)]
    return {key: np.sort(indices) for key, indices in wanted.items() if len(indices) < rows.sizes[key]}


def _in_order(size: int, far: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return indices of an axis, those that matter most first."""
    borders = [m * s + d for m in (1, 2, 3) for s in TILES for d in (-1, 0, 1)]
    drawn = np.random.default_rng(size).integers(0, max(size, 1), DRAWN)
    first = [*np.asarray(far, dtype=np.int64), 0, size - 1, 1, size - 2, *borders, *drawn]
    return np.asarray(list(dict.fromkeys(int(i) for i in first if 0 <= i < size)), dtype=np.int64)


def farthest(rows: Rows, outputs: Arrays, near: Arrays) -> dict[Key, npt.NDArray[np.int64]]:
    """Return the indices of the rows whose outputs differ most from `near`, for the size of the row, the farthest first."""
    keys = list(rows.sizes)
    total = np.zeros(tuple(rows.sizes.values()))
    for name, expected in near.items():
        axes = {key: axis for axis, key in rows.results[name].items() if expected.shape[axis] == rows.sizes[key]}
        others = tuple(axis for axis in range(expected.ndim) if axis not in axes.values())
        with np.errstate(all="ignore"):
            error = np.nan_to_num(np.abs(outputs[name].astype(np.float64) - expected), nan=np.inf)
            size = np.abs(expected).astype(np.float64)
            if others:
                error, size = np.max(error, axis=others, initial=0.0), np.max(size, axis=others, initial=0.0)
            ratio = np.nan_to_num(error / (size + np.finfo(np.float32).tiny), nan=np.inf)
        order = sorted(axes, key=axes.__getitem__)
        ratio = ratio.transpose([order.index(key) for key in keys if key in axes])
        total = np.maximum(total, ratio[tuple(slice(None) if key in axes else None for key in keys)])
    worst = np.argpartition(total, -FAR, axis=None)[-FAR:] if total.size > FAR else np.arange(total.size)
    worst = worst[np.argsort(total.ravel()[worst], kind="stable")[::-1]]
    return dict(zip(keys, np.unravel_index(worst, total.shape), strict=True)) if keys else {}
