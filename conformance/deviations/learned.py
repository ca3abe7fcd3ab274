"""Deviations of learned tables that are read in other ways than row by row."""

from typing import Any

import numpy as np

from .compose import Function, Real, after, deviations_of


def _axes_exchanged(function: Function) -> Function:
    """The second coordinate is looked up in the first table."""

    def deviating(positions: Any, first: Any, second: Any, /, *, combine: str) -> Any:
        p, q = positions
        return function(np.stack([q % len(first), p % len(second)]), first, second, combine=combine)

    return deviating


def _other_end_first(out: Real, positions: Any, first: Any, second: Any, /, *, combine: str) -> Real:
    width = first.shape[1]
    return np.concatenate([out[..., width:], out[..., :width]], axis=-1) if combine == "concat" else out


def _added(function: Function) -> Function:
    def deviating(positions: Any, first: Any, second: Any, /, *, combine: str) -> Any:
        found = function(positions, first, second, combine=combine)
        if combine == "sum" or first.shape[1] != second.shape[1]:
            return found
        total = function(positions, first, second, combine="sum")
        return np.concatenate([total, total], axis=-1)

    return deviating


def _counted(function: Function) -> Function:
    """The grid is walked from its corner, whatever the positions."""

    def deviating(positions: Any, first: Any, second: Any, /, *, combine: str) -> Any:
        shape = positions.shape[1:]
        count = np.broadcast_to(np.arange(shape[-1]) if shape else 0, shape)
        return function(np.stack([count // len(second) % len(first), count % len(second)]), first, second, combine=combine)

    return deviating


_axial = deviations_of("axial_learned")
AXIAL = (
    _axial("axial-learned-exchanged", "the two coordinates are exchanged", _axes_exchanged,
           "The first table belongs to positions[0].", "transformers' documentation of Reformer"),
    _axial("axial-learned-second-first", "the second table's columns come first", after(_other_end_first),
           "DETR's column embedding comes first: give columns first."),
    _axial("axial-learned-added", "rows are added where they belong side by side", _added),
    _axial("axial-learned-counted", "positions are counted from the grid's corner", _counted, "", "DALLE-pytorch#52"),
    _axial("axial-learned-mean", "the sum is halved", after(lambda out, *args, combine: out / 2 if combine == "sum" else out)),
    _axial("axial-learned-first-alone", "the second table is left out of the sum", lambda f: lambda p, a, b, /, *, combine: f(
        p, a, b if combine == "concat" else 0 * b, combine=combine)),
)  # fmt: skip

DEVIATIONS = AXIAL
