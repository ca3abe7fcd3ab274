"""Half-widths of accuracy classes that no suite stores, computed when they are asked for. They need no python-flint."""

from __future__ import annotations

import numpy as np

from posref.backends.bounds import Bounds, rounded_up
from posref.backends.live import LiveScalars, LiveSensitivity, live
from posref.backends.numbers import Undecided

from ..accuracy import ROUNDING
from ..model import Arrays, Call
from .running import Pullback, as_reals, results_of


def half_widths(op: str, call: Call, accuracy: str) -> Arrays:
    """Return the half-widths of a call's results that are reals, computed once; NaN if the class leaves a decision open."""
    if accuracy not in call.computed:
        call.computed[accuracy] = _computed(op, call, live(accuracy))
    return call.computed[accuracy]


def of_scalars(op: str, call: Call, dtype: str) -> Arrays:
    """Return how far a call's results move when scalars, such as 1/sqrt(D), are rounded to `dtype`, computed once."""
    kept = f"scalars-{dtype}"
    if kept not in call.computed:
        call.computed[kept] = _computed(op, call, LiveScalars(ROUNDING[dtype]))
    return call.computed[kept]


def _computed(op: str, call: Call, system: Bounds) -> Arrays:
    pullback = Pullback(call.cotangents, tuple(call.expected)) if call.cotangents else None
    expected = {name: value for name, value in call.expected.items() if value.dtype.kind == "f"}
    try:
        results = results_of(system, op, call.inputs, call.params, pullback)
    except Undecided:
        return {name: np.full(value.shape, np.nan) for name, value in expected.items()}
    found = {}
    for name, value in expected.items():
        error = as_reals(results[name], system).parts[1]
        own = np.where(error > 0, 2.0**-53 * np.abs(value), 0.0)  # expected itself is rounded once
        found[name] = rounded_up(np.broadcast_to(error + own, value.shape))
    return found


def moved_by_trigonometry(op: str, call: Call) -> dict[str, Arrays]:
    """Return by the name "trig" how far results move with each unit of error of sines and cosines; nothing if they do not."""
    results = results_of(LiveSensitivity(), op, call.inputs, call.params, None)
    found = {
        name: rounded_up(
            np.broadcast_to(as_reals(results[name], LiveSensitivity()).parts[1] / LiveSensitivity.SMALL, value.shape)
        )
        for name, value in call.expected.items()
        if value.dtype.kind == "f"
    }
    moved = {name: size for name, size in found.items() if np.any(size)}
    return {"trig": moved} if moved else {}
