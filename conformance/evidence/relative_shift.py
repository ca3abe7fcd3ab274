"""The relative shift of Transformer-XL: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, around, around_with, cases_of, deviations_of, gradient, reals

OP = "relative_shift"

KERNEL: tuple[dict[str, Any], ...] = ({},)

_case = cases_of(OP)


def _shifted(name: str, *shape: int, bits: int = 8, comment: str = "", **rest: Any) -> Case:
    """Return a case of scores of a shape."""
    return _case(name, {}, {"x": reals(OP + name, *shape, bits=bits)}, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _shifted("whole/small", 2, 3, comment="Transformer-XL: two queries, three keys", tier="smoke"),
        _shifted("whole/heads", 6, 2, 4, 5),
        _shifted("both/conformer", 33, 65, comment="33 frames, 65 distances"),
        _shifted("both/keys-257", 5, 257),
        _shifted("corner/two-distances", 2, 5, 2),
        _shifted("corner/one-distance", 4, 1),
        _shifted("corner/53-bits", 3, 4, bits=53),
        _shifted("empty/no-distances", 2, 3, 0),
        _shifted("empty/no-distance", 3, 0),
        _shifted("forms/length-one", 1, 1, 5, comment="one query"),
        _shifted("refused/vector", 5, comment="no axis of queries", kind="reject"),
        gradient(OP, "whole", {"x": reals(OP, 2, 3, 4)}, {"out": (2, 3, 4)}),
        gradient(OP, "both", {"x": reals(OP, 3, 5, bits=24)}, {"out": (3, 5)}, bits=24),
    )


@around_with
def _from_flat(start: Any, width: Any, function: Function, x: Real, /) -> Real:
    """The scores, with zeros around, are read as one row from elsewhere."""
    *lead, queries, distances = x.shape
    if not queries * distances:
        return function(x)
    wider = np.concatenate([np.zeros((*lead, queries, 1)), x], axis=-1).reshape(*lead, -1)
    begin, wide = start(queries, distances), width(queries, distances)
    index = (begin + wide * np.arange(queries)[:, None] + np.arange(distances)) % wider.shape[-1]
    return wider[..., index]


@around
def _corner_zero(function: Function, x: Real, /) -> Real:
    queries, distances = x.shape[-2:]
    beyond = np.arange(distances) + queries - 1 - np.arange(queries)[:, None] >= distances
    return np.where(beyond, 0, function(x))


@around
def _right(function: Function, x: Real, /) -> Real:
    return function(x[..., ::-1])[..., ::-1]


SHIFT = "Put a column of zeros first, view as (distances + 1, queries), drop the first row."

_deviation = deviations_of(OP)

DEVIATIONS = (
    _deviation("relative-shift-last-dropped", "the last row is dropped where the first is",
               _from_flat(lambda q, d: 0, lambda q, d: d), hint=SHIFT, seen_in="labml #185"),
    _deviation("relative-shift-none", "nothing is moved", lambda f: lambda x, /: 1 * x, hint=SHIFT, seen_in="espnet #2684"),
    _deviation("relative-shift-one-more", "each row moves one place too far", _from_flat(lambda q, d: q + 1, lambda q, d: d),
               hint=SHIFT),
    _deviation("relative-shift-one-less", "each row moves one place too little", _from_flat(lambda q, d: q - 1, lambda q, d: d),
               hint=SHIFT),
    _deviation("relative-shift-all-rows", "all rows move as far as the first", _from_flat(lambda q, d: q, lambda q, d: d + 1),
               hint=SHIFT),
    _deviation("relative-shift-right", "rows move to the right", _right,
               hint="Distances fall from column to column: the first is the farthest key before the query.",
               seen_in="speechbrain/speechbrain #3073"),
    _deviation("relative-shift-corner-zero", "cells past the end are set to 0", _corner_zero,
               hint="Only cells that a mask must hide differ.", seen_in="zero_triu of Transformer-XL"),
)  # fmt: skip
