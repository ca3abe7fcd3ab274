"""Pictures of position ids: what every place of a row, or every rank, is given."""

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
PACKED = ((24,), (10, 14), (5, 8, 11), (3, 3, 3, 15))  # lengths of documents
LENGTH = 48  # tokens that are shared out


def ids(asked: Asked) -> Chart:
    """Return what an operation on positions gives: for rows of padding or documents, for queries, or for all ranks."""
    if not asked.record.arrays:
        return _shards(asked)
    (name,) = asked.record.arrays
    return _steps(asked) if name == "q_positions" else _rows(asked, name)


def _rows(asked: Asked, name: str) -> Map:
    """Return the numbers of the tokens of some rows."""
    (found,) = asked.result(**{name: _given(asked, name)})
    seen = "Every row is a sequence; the colour is the number that a token is given."
    return Map(asked.title, "place in the row", "row", seen, found, "number")


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
    """Return the number that each query is given."""
    places = np.arange(asked.tokens)
    (found,) = asked.result(q_positions=places)
    title, seen = asked.title, "It grows by one with the last token of each window."
    return Lines(title, "query (position)", "windows", seen, {"windows": (places.astype(np.float64), found)}, steps=True)


def _shards(asked: Asked) -> Map:
    """Return which rank has each token, and where in its shard."""
    ranks = int(asked.settings["ranks"])
    values = np.full((ranks, LENGTH), math.nan)
    for rank in range(ranks):
        positional, keywords = bind(asked.op, {}, {**asked.settings, "length": LENGTH, "rank": rank})
        own = np.asarray(asked.record.function(*positional, **keywords))
        values[rank, own] = np.arange(len(own))
    seen = "Every row is a rank; its tokens are coloured, in the order in which it has them."
    return Map(asked.title, "position (tokens)", "rank", seen, values, "place in the shard")
