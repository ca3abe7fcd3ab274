"""Curves of biases, buckets, and operations that return one number for each position, head or pair."""

from __future__ import annotations

import numpy as np

from posref.analysis import by_distance

from .calls import Asked, beside, first_case
from .charts import Lines

FAR = 256  # relative positions


def bias(asked: Asked) -> Lines:
    """Return the bias that each head adds to the logits at each distance."""
    places = np.arange(asked.tokens)
    (by_head,) = asked.result(**beside(asked, asked.tokens), q_positions=places, k_positions=places)
    heads = by_distance(np.broadcast_to(by_head, (by_head.shape[0], len(places), len(places))))
    distances = places.astype(np.float64)
    series = {f"head {n}": (distances, row) for n, row in enumerate(heads)}
    made_up = " Its learned values are made up." if set(asked.record.arrays) - {"q_positions", "k_positions"} else ""
    seen = f"The bias of the last query, by distance.{made_up}"
    return Lines(asked.title, "query - key (tokens)", "bias (logits)", seen, series)


def buckets(asked: Asked) -> Lines:
    """Return the bucket of each relative position."""
    apart = np.arange(-FAR, FAR + 1)
    (numbers,) = asked.result(**{next(iter(asked.record.arrays)): apart})
    series = {"bucket": (apart.astype(np.float64), numbers)}
    return Lines(asked.title, "key - query (tokens)", "bucket", "Each near position has its own bucket.", series, steps=True)


def values(asked: Asked) -> Lines:
    """Return one number for each position, or for each head or pair."""
    if asked.record.arrays:
        far = 16 * max(int(value) for value in (first_case(asked.op).params.get("original_length"), asked.tokens) if value)
        places = np.unique(np.geomspace(1, far, 200).astype(np.int64))
        (numbers,) = asked.result(**{asked.positions_name: places})
        series, x_label = {asked.title: (places.astype(np.float64), numbers)}, "position (tokens)"
        return Lines(asked.title, x_label, "factor", "One factor for each position.", series, log_x=True)
    numbers = asked.result()[0]
    series = {asked.title: (np.arange(len(numbers), dtype=np.float64), numbers)}
    noun = "head" if "heads" in asked.record.domains else "channel pair"
    return Lines(
        asked.title, noun, "slope (logits per token)" if noun == "head" else "radians per unit", f"One number for each {noun}.",
        series, log_y=True, points=True,
    )  # fmt: skip
