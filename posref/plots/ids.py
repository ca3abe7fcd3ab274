"""Charts of position ids: the number of every token in a row, or the tokens of every rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.conformance.calls import bind

from .calls import Asked
from .charts import Chart, Lines, Map

PLACES = 24  # of a row
LEFT, RIGHT = (0, 4, 9, 0, 6), (0, 0, 0, 8, 5)  # padding of the rows shown
PACKED = ((24,), (10, 14), (5, 8, 11), (3, 3, 3, 15))  # lengths of packed documents
LENGTH = 48  # tokens divided among the ranks


def ids(asked: Asked) -> Chart:
    """Return the result of an operation on positions: for padded or packed rows, for queries, or for all ranks."""
    if not asked.record.arrays:
        return _shards(asked)
    (name,) = asked.record.arrays
    return _steps(asked) if name == "q_positions" else _rows(asked, name)


def _rows(asked: Asked, name: str) -> Map:
    """Return the number of each token of some rows: its position id, or that of its document."""
    (ids,) = asked.result(**{name: _given(asked, name)})
    what = "number of the document" if name == "positions" else "position id"
    seen = f"Each row is a sequence. The colour is the {what} of each token."
    return Map(asked.title, "place in the row", "row", seen, ids, "number")


def _given(asked: Asked, name: str) -> npt.NDArray[Any]:
    if name == "positions":
        return np.stack([np.concatenate([np.arange(length) for length in lengths]) for lengths in PACKED])
    places = np.arange(PLACES)
    mask = np.stack([(places >= left) & (places < PLACES - right) for left, right in zip(LEFT, RIGHT, strict=True)])
    if name == "mask":
        return mask
    padding = int(asked.settings["padding_idx"])
    return np.where(mask, padding + 1, padding)


def _steps(asked: Asked) -> Lines:
    """Return the number of windows that each query sees."""
    places = np.arange(asked.tokens)
    (counts,) = asked.result(q_positions=places)
    title, seen = asked.title, "It grows by one at the last token of each window."
    return Lines(title, "query (position)", "windows", seen, {"windows": (places.astype(np.float64), counts)}, steps=True)


def _shards(asked: Asked) -> Map:
    """Return the rank of each token, and its place in that rank's shard."""
    ranks = int(asked.settings["ranks"])
    values = np.full((ranks, LENGTH), math.nan)
    for rank in range(ranks):
        positional, keywords = bind(asked.op, {}, {**asked.settings, "length": LENGTH, "rank": rank})
        shard = np.asarray(asked.record.function(*positional, **keywords))
        values[rank, shard] = np.arange(len(shard))
    seen = "Each row is a rank. The colour of a token is its place in that rank's shard."
    return Map(asked.title, "position (tokens)", "rank", seen, values, "place in the shard")
