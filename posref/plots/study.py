"""Charts of how the rows of a table relate: distances, correlations and inner products."""

from __future__ import annotations

import numpy as np

from posref.analysis import correlation_matrix, distance_matrix, distances_from, inner_products, pairs

from .calls import Asked
from .charts import Lines, Map, Numbers, Points


def _rows(asked: Asked) -> Numbers:
    return asked.encoded(np.arange(asked.tokens, dtype=np.float64))


def distance(asked: Asked) -> Map:
    """Return the Euclidean distance between every two rows."""
    seen = "How far apart the encodings of two positions are."
    distances = distance_matrix(_rows(asked))
    return Map(asked.title, asked.places, asked.places, seen, distances, "distance", square=True)


def correlation(asked: Asked) -> Map:
    """Return the correlation between every two rows."""
    seen = "How similar the encodings of two positions are, over channels."
    correlations = correlation_matrix(_rows(asked))
    return Map(asked.title, asked.places, asked.places, seen, correlations, "correlation", square=True)


def scatter(asked: Asked) -> Points:
    """Return distance against correlation for every pair of rows, coloured by the number of tokens between them."""
    rows = _rows(asked)
    places = np.arange(asked.tokens, dtype=np.float64)
    seen = "One dot for every two positions, coloured by their distance in tokens."
    apart = pairs(np.abs(places[:, None] - places[None, :]))
    alike, far = pairs(correlation_matrix(rows)), pairs(distance_matrix(rows))
    return Points(asked.title, "correlation", "distance", seen, alike, far, apart, "tokens apart")


def from_some(asked: Asked) -> Lines:
    """Return the distance from four rows to all rows."""
    chosen = tuple(dict.fromkeys((0, asked.tokens // 4, asked.tokens // 2, asked.tokens - 1)))
    distances = distances_from(_rows(asked), chosen)
    places = np.arange(asked.tokens, dtype=np.float64)
    series = {f"from position {p}": (places, row) for p, row in zip(chosen, distances, strict=True)}
    return Lines(asked.title, asked.places, "distance", "Each curve is 0 at its own position.", series)


def product(asked: Asked) -> Lines:
    """Return inner products by offset, plain and after random projections of queries and keys."""
    rows = _rows(asked)
    middle, width = asked.tokens // 2, rows.shape[1]
    draw = np.random.default_rng(0)
    wq, wk = (draw.standard_normal((width, width)) / np.sqrt(width) for _ in range(2))
    plain, mixed = inner_products(rows, middle=middle), inner_products(rows, middle=middle, wq=wq, wk=wk)
    offsets = np.arange(asked.tokens, dtype=np.float64) - middle
    series = {"plain": (offsets, plain), "with random W_Q, W_K": (offsets, mixed)}
    seen = f"The inner product of row {middle} with every row, plain and after random projections."
    return Lines(asked.title, "offset (tokens)", "inner product", seen, series)
