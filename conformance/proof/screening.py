"""What a large call gives, quickly: its shapes from a few rows, and the rows that are farthest off from all in small parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ..calls import bind, makes_constants, takes_dtype
from ..model import Arrays, Call
from ..suite.rows import Key, Rows, rows_of
from . import choosing

PART = 1 << 18  # values that are compared at once: so many stay in a processor's cache


def plain(op: str, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Arrays:
    """Return what the definition gives in NumPy's float64: not the truth, but near it."""
    positional, keywords = bind(op, inputs, params)
    if makes_constants(op):
        import array_api_compat.numpy as xp

        keywords["xp"] = xp
    if takes_dtype(op):
        keywords["dtype"] = np.dtype(np.float64)
    with np.errstate(all="ignore"):
        found = REGISTRY[op].function(*positional, **keywords)
    names = REGISTRY[op].outputs
    return {n: np.asarray(x) for n, x in zip(names, found if len(names) > 1 else (found,), strict=True)}


def wide(arrays: Arrays) -> Arrays:
    """Return arrays with their reals in float64."""
    return {n: x.astype(np.float64) if x.dtype.kind == "f" and x.dtype != np.float64 else x for n, x in arrays.items()}


def shapes_of(op: str, call: Call, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """
    Return arrays of the shapes and kinds of a call's results, without their values.

    The definition runs on two indices of every row axis; where that does not give the `shapes` that somebody has, on all.
    """
    rows = rows_of(op, call.inputs, call.params, shapes)
    few = {key: np.arange(choosing.LEAST) for key, size in rows.sizes.items() if size > choosing.LEAST}
    try:
        part = plain(op, wide(rows.cut(call.inputs, few)), call.params)
    except ValueError:  # of the whole call it says more
        part = {}
    found = {}
    for name, x in part.items():
        sizes = {axis: rows.sizes[key] for axis, key in rows.results.get(name, {}).items() if key in few}
        found[name] = _empty(x, tuple(sizes.get(axis, n) if n == choosing.LEAST else n for axis, n in enumerate(x.shape)))
    if {name: x.shape for name, x in found.items()} == dict(shapes):
        return found
    return {name: _empty(x, x.shape) for name, x in plain(op, wide(call.inputs), call.params).items()}


def _empty(x: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return an array of a shape, and of the kind of `x`, that takes no memory."""
    return np.broadcast_to(np.zeros((), dtype=np.int64 if x.dtype.kind in "bi" else np.float64), shape)


def farthest(op: str, call: Call, rows: Rows, outputs: Arrays) -> choosing.Far:
    """Return the rows of a call whose outputs are farthest from what the definition gives in float64."""
    total = np.zeros(tuple(rows.sizes.values()))
    key = _divided(rows, call.inputs)
    for part in _parts(rows.sizes[key], max(y.size for y in outputs.values())) if key is not None else [slice(None)]:
        there = {key: part} if key is not None else {}
        near = plain(op, wide(rows.cut(call.inputs, there)), call.params)
        local = replace(rows, sizes={k: len(range(n)[there.get(k, slice(None))]) for k, n in rows.sizes.items()})
        off = choosing.far_off(local, rows.cut_results(outputs, there), near)
        total[tuple(there.get(k, slice(None)) for k in rows.sizes)] = off
    return choosing.farthest(rows, total)


def _divided(rows: Rows, inputs: Arrays) -> Key | None:
    """Return the row axis to divide a call by: that of most arguments, so that little is computed again in every part."""
    have = {
        key: sum(key in own.values() and inputs[n].shape[next(a for a, k in own.items() if k == key)] == size
                 for n, own in rows.arguments.items())
        for key, size in rows.sizes.items()
    }  # fmt: skip
    return max(have, key=lambda key: (have[key], rows.sizes[key]), default=None)


def _parts(size: int, values: int) -> list[slice]:
    """Return slices of an axis, each of at least two indices, so that about `PART` values belong to each."""
    count = max(1, min(size // choosing.LEAST, -(-values // PART)))
    edges = [size * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]
