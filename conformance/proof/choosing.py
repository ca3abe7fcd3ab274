"""Which rows of a call are judged: all where that is quick, else those where kernels break and those that look farthest off."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..model import Arrays
from ..suite.rows import Key, Rows, Selection

TILES = tuple(16 << k for k in range(9))  # 16 to 4096
DRAWN, FAR = 96, 32
Far = dict[Key, npt.NDArray[np.int64]]
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


def choose(rows: Rows, outputs: Arrays, near: Arrays, budget: Budget, screen: Callable[[], Far] | None = None) -> Selection:
    """
    Return the indices to judge along every row axis; of an axis that is not among them all.

    First come the rows whose outputs are farthest from `near`, which is close to the truth. That they look right proves
    nothing, so the first and last rows, those around multiples of usual tile sizes and drawn ones are judged too. With a
    `screen`, which finds the farthest rows, only the shapes of `near` matter.
    """
    if fits(rows, near, {}, budget):
        return {}
    far = farthest(rows, far_off(rows, outputs, near)) if screen is None else screen()
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


def far_off(rows: Rows, outputs: Arrays, near: Arrays) -> npt.NDArray[np.float64]:
    """Return how much the outputs of every row differ from `near`, for the size of the row; the axes are those of `rows`."""
    keys = list(rows.sizes)
    total = np.zeros(tuple(rows.sizes.values()))
    for name, expected in near.items():
        axes = {key: axis for axis, key in rows.results.get(name, {}).items() if expected.shape[axis] == rows.sizes[key]}
        others = tuple(axis for axis in range(expected.ndim) if axis not in axes.values())
        with np.errstate(all="ignore"):
            error = np.asarray(outputs[name] - expected.astype(np.float64, copy=False))
            error = np.abs(error, out=error)
            size = np.abs(expected)
            if others:
                error, size = np.max(error, axis=others, initial=0.0), np.max(size, axis=others, initial=0.0)
            ratio = np.nan_to_num(error / (size + np.finfo(np.float32).tiny), nan=np.inf)
        order = sorted(axes, key=axes.__getitem__)
        ratio = ratio.transpose([order.index(key) for key in keys if key in axes])
        total = np.maximum(total, ratio[tuple(slice(None) if key in axes else None for key in keys)])
    return total


def farthest(rows: Rows, total: npt.NDArray[np.float64]) -> Far:
    """Return the indices of the rows that are farthest off, the farthest first."""
    worst = np.argpartition(total, -FAR, axis=None)[-FAR:] if total.size > FAR else np.arange(total.size)
    worst = worst[np.argsort(total.ravel()[worst], kind="stable")[::-1]]
    return dict(zip(rows.sizes, np.unravel_index(worst, total.shape), strict=True)) if rows.sizes else {}
