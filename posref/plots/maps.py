"""Heat maps: of tables, masks, distances, biases, logits and grids."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from posref.analysis import inner_products

from .calls import CHANNELS, Asked, beside, first_case
from .charts import Map, Numbers

SHOWN = 64  # positions of queries and keys
SIDE = 24  # cells of a grid along each axis


def table(asked: Asked) -> Map:
    """Return every channel at every position."""
    rows = asked.encoded(np.arange(asked.tokens, dtype=np.float64))
    vectors = "" if asked.vectors_name is None else ", applied to vectors of ones"
    return Map(f"{asked.title}{vectors}", "channel", asked.places, "Each row is the encoding of one position.", rows, "value")


def mask(asked: Asked) -> Map:
    """Return which keys each query may attend to."""
    return _of_places(asked, "Cells are bright where the query may attend to the key.", "1 where it may attend")


def distances(asked: Asked) -> Map:
    """Return the distance that attention uses for each query and the keys up to it."""
    chart = _of_places(asked, "The distance that attention uses for each query and the keys before it.", "tokens")
    return replace(chart, values=np.where(np.tri(len(chart.values), dtype=bool), chart.values, math.nan))


def matrix(asked: Asked) -> Map:
    """Return the bias of the middle head."""
    return _of_places(asked, "The bias that is added to the logits of one head.", "logits")


def _of_places(asked: Asked, seen: str, unit: str) -> Map:
    places = np.arange(min(asked.tokens, SHOWN))
    (values,) = asked.result(**beside(asked, len(places)), q_positions=places, k_positions=places)
    head = ""
    if values.ndim == 3:
        head = f", head {values.shape[0] // 2} of {values.shape[0]}"
        values = values[values.shape[0] // 2]
    shown = np.broadcast_to(values, (len(places), len(places)))
    return Map(f"{asked.title}{head}", "key (position)", "query (position)", seen, shown, unit, square=True)


def logits(asked: Asked) -> Map:
    """Return the logits of queries and keys that are all ones, for keys up to the query."""
    places = np.arange(min(asked.tokens, SHOWN))
    sizes = {name: first_case(asked.op).inputs[name].shape for name in asked.record.arrays}
    others = " ".join(axes.shape for name, axes in asked.record.arrays.items() if name not in ("q", "k"))
    wide = "D" not in others.split()
    arrays = {
        name: np.ones((*shape[:-2], len(places), CHANNELS if wide else shape[-1]))
        for name, shape in sizes.items()
        if name not in ("q_positions", "k_positions") and _has_rows(asked, name)
    }
    (values,) = asked.result(q_positions=places, k_positions=places, **arrays)
    while values.ndim > 2:
        values = values[0]
    behind = np.where(places[:, None] >= places[None, :], values, math.nan)
    seen = "Logits of equal queries and keys: only their positions differ."
    return Map(asked.title, "key (position)", "query (position)", seen, behind, "logit", square=True)


def _has_rows(asked: Asked, name: str) -> bool:
    tokens = asked.record.arrays[name].shape.split("|")[0].split()
    return "Q" in tokens or "K" in tokens


def grid(asked: Asked) -> Map:
    """Return the inner product of the middle cell's encoding and every cell's encoding."""
    rows = np.repeat(np.arange(SIDE, dtype=np.float64), SIDE)
    columns = np.tile(np.arange(SIDE, dtype=np.float64), SIDE)
    if asked.coordinates:
        cells = np.stack([rows / SIDE, columns / SIDE], axis=-1)
    else:
        cells = np.stack([np.zeros_like(rows)] * (asked.axes - 2) + [rows, columns])
    arrays = {asked.positions_name: asked.in_kind(asked.positions_name, cells)}
    if asked.vectors_name is not None:
        arrays[asked.vectors_name] = np.ones((SIDE * SIDE, asked.channels))
    encoded = np.concatenate([out.reshape(SIDE * SIDE, -1) for out in asked.result(**arrays)], axis=-1)
    middle = SIDE // 2 * SIDE + SIDE // 2
    products = inner_products(encoded, middle=middle).reshape(SIDE, SIDE)
    seen = f"The inner product of the cell at row {SIDE // 2}, column {SIDE // 2} with every cell."
    return Map(f"{asked.title}, a grid of {SIDE} x {SIDE}", "column", "row", seen, products, "inner product", square=True)


def example(asked: Asked) -> Map:
    """Return the result of the operation's first case, as rows of its last axis."""
    values: Numbers = asked.example()[0]
    flat = values.reshape(-1, values.shape[-1]) if values.ndim else values.reshape(1, 1)
    seen = f"The result of {asked.op} for its first case, shape {values.shape}. Leading axes are flattened into rows."
    return Map(f"{asked.title}, first case", "last axis", "rows", seen, flat, "value")
