"""The kinds of charts: which operations have them, and the function that makes each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posref.conformance.calls import array_names, positions_of
from posref.spec import REGISTRY, Encoding

from .calls import Asked
from .charts import Chart
from .ids import ids
from .maps import distances, example, grid, logits, mask, matrix, table
from .pictures import MAKERS, OWN, PICTURES
from .study import correlation, distance, from_some, product, scatter
from .turning import axes, bound, decay, error, scaling, wavelengths
from .values import bias, buckets, values


@dataclass(frozen=True)
class Kind:
    """A kind of chart: what it shows, which operations have it, and the function that makes it."""

    name: str
    shows: str
    applies: Callable[[Encoding], bool]
    chart: Callable[[Asked], Chart]


def _is_distances(record: Encoding) -> bool:
    return set(record.arrays) == {"q_positions", "k_positions"} and record.family == "extension" and record.returns != "mask"


def _is_bias(record: Encoding) -> bool:
    """Return whether the operation maps positions to what is added to logits: buckets of pairs are integers, and cells."""
    return record.family == "bias" and record.returns == "real" and {"q_positions", "k_positions"} <= set(record.arrays)


def _is_logits(record: Encoding) -> bool:
    """Return whether the operation maps queries, keys and their positions to scores, (..., Q, K)."""
    return {"q", "k", "q_positions", "k_positions"} <= set(record.arrays) and record.result[0].endswith("Q K")


def _is_bucket(record: Encoding) -> bool:
    return record.returns == "integer" and len(record.arrays) == 1 and record.family != "positions"


def _has_base(record: Encoding) -> bool:
    """Return whether the frequencies are those of `posref.rope_frequencies`: powers of a base."""
    return "base" in record.domains and "scaling" in record.domains


def _has_waves(record: Encoding) -> bool:
    """Return whether the wavelengths are those of a base, of rotations or of sinusoids of one position."""
    return _has_base(record) or {"base", "dim", "endpoint"} <= set(record.domains)


def _is_value(record: Encoding) -> bool:
    """Return whether the result is one number for each position, or depends on no array."""
    return (not record.arrays or (record.result == ("*P",) and record.returns == "real")) and record.family != "positions"


def _is_table(record: Encoding) -> bool:
    """Return whether every position gives a row of numbers: an encoding, or an encoded vector of ones."""
    places = positions_of(record.name)
    if len(places) != 1 or _is_value(record) or _is_bucket(record) or record.family in ("positions", "bias"):
        return False
    asked = Asked(record.name)
    made_up = set(record.arrays) - {places[0], asked.vectors_name}
    whole = not record.arrays[places[0]].index and not any(dims in record.result[0] for dims in ("dim dim", "n n"))
    return whole and all(record.arrays[name].kind in ("wide", "real") for name in made_up) and _fits(asked)


def _fits(asked: Asked) -> bool:
    """Return whether the operation accepts the vectors of a single head."""
    name = asked.vectors_name
    tied = [axes.shape for array, axes in asked.record.arrays.items() if array != name and axes.kind == "real"]
    return name is None or not any("G" in shape.split() or "H" in shape.split() for shape in " | ".join(tied).split(" | "))


def _is_grid(record: Encoding) -> bool:
    return _is_table(record) and (Asked(record.name).axes >= 2 or Asked(record.name).coordinates == 2)


def _is_own(record: Encoding) -> bool:
    """Return whether the picture was made for this operation alone."""
    return record.name in PICTURES and PICTURES[record.name].kind == OWN


KINDS = {
    kind.name: kind
    for kind in (
        Kind(OWN, "what the operation is for, with inputs chosen to show it", _is_own, lambda asked: MAKERS[asked.op](asked)),
        Kind(
            "ids",
            "the position id of each token in a row, or the tokens of each rank",
            lambda record: record.family == "positions" and PICTURES[record.name].kind == "ids",
            ids,
        ),
        Kind("mask", "which keys each query may attend to", lambda record: record.returns == "mask", mask),
        Kind("distances", "the distance that attention uses for each query and key", _is_distances, distances),
        Kind("buckets", "the bucket of each relative position", _is_bucket, buckets),
        Kind("bias", "what is added to the logits at each distance, by head", _is_bias, bias),
        Kind("matrix", "what is added to the logits of one head", _is_bias, matrix),
        Kind("logits", "the logits of equal queries and keys", _is_logits, logits),
        Kind(
            "axes",
            "which position axis rotates each channel pair, and how fast",
            lambda record: record.family == "rotary" and "arrangement" in record.domains,
            axes,
        ),
        Kind("decay", "the mean inner product of a rotated query and key, by distance", _has_base, decay),
        Kind("values", "one number for each position, head or pair", _is_value, values),
        Kind("table", "every channel at every position", _is_table, table),
        Kind("grid", "the inner product of one cell with all cells of a grid", _is_grid, grid),
        Kind("distance", "the distance between every two rows", _is_table, distance),
        Kind("correlation", "the correlation between every two rows", _is_table, correlation),
        Kind("scatter", "the distance of each pair of rows against its correlation", _is_table, scatter),
        Kind("from", "the distance from some rows to all rows", _is_table, from_some),
        Kind("product", "inner products by offset, plain and after random projections", _is_table, product),
        Kind("wavelengths", "how many tokens each channel pair needs for a full rotation", _has_waves, wavelengths),
        Kind("scaling", "how context extensions change each frequency", _has_base, scaling),
        Kind("bound", "RoFormer's bound on the decay", _has_base, bound),
        Kind("error", "the error of float32, float16 and bfloat16 angles", _has_base, error),
        Kind("example", "the result of the operation's first case", lambda record: bool(array_names(record.name)), example),
    )
}


def kinds_of(op: str) -> list[Kind]:
    """Return the kinds of charts that an operation has, its default first."""
    kinds = [kind for kind in KINDS.values() if kind.applies(REGISTRY[op])]
    first = PICTURES[op].kind if op in PICTURES else ""
    return sorted(kinds, key=lambda kind: kind.name != first)


def positions(tokens: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the positions 0, 1, ... as float64."""
    return np.arange(tokens, dtype=np.float64)
