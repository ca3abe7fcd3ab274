r"""
Phases of a black box that rotates pairs, and the scale, base and offset that they follow.

An output that rotates pairs has :math:`r = (y_a + i y_b)/(x_a + i x_b) = g e^{i \theta}` in the layout that it uses and in no
other: there |r| is one gain, and its phase is

.. math:: \theta_{p,k} = c\,(p + \delta)\,f_k\,q^{-k/n}, \qquad k = 0 \dots n - 1

where f are the frequencies asked for. A direction is the sign of c, a scale its size, an offset is delta, another base is q
times the one asked for. Phases are known up to turns: the fit begins with angles too small to have any and admits larger ones
as its parameters become more certain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import posref

from ..evidence.shared.rotary import members, reads_writes
from .hypotheses import JITTER, UNITS, Question

LAYOUTS = ("half", "interleaved", "interleaved_to_half")
WIDENING = 4.0  # the largest angle admitted grows by this factor from fit to fit
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Seen:
    """The first call of a case by rows: what went in and came out, and what was asked."""

    x: Array
    y: Array
    params: dict[str, Any]
    dim: int
    positions: Array
    turns: Array | None  # exp(i angle), if the call brings its angles
    unit: float  # what rounding may do to a value, relative to the largest of its row
    jitter: float

    @property
    def sign(self) -> int:
        """The direction asked for."""
        return -1 if self.params.get("inverse") else 1


@dataclass(frozen=True)
class Turned:
    """A call in which every pair is rotated, in one layout and with one gain; phases by position and pair."""

    layout: str
    dim: int
    gain: float
    positions: Array
    phases: Array  # r/g at every position and pair
    errors: Array  # what rounding may do to their angles; infinite where nothing is known
    alone: bool  # whether no other layout would do


def seen_in(question: Question) -> Seen | None:
    """Return the first call of a case; None where it has no pair to look at."""
    call, y = question.calls[0], question.answer.outputs[0]["out"].astype(np.float64)
    params, turns = dict(call.params), None
    if question.op == "rotation_matrix":  # it turns a vector
        x = np.cos(np.arange(1.0, y.shape[-1] + 1)) + 2
        y, positions = y @ x, call.inputs["position"]
        x = np.broadcast_to(x, y.shape)
    else:
        x = call.inputs["x"].astype(np.float64)
        positions = call.inputs["positions"] if question.op == "rope" else np.arange(x[..., 0].size).reshape(x.shape[:-1])
    dim = params.get("rotary_dim") or x.shape[-1]
    if question.op == "apply_rope":
        turns = call.inputs["cos"] + 1j * call.inputs["sin"]
        dim = 2 * turns.shape[-1]
        turns = np.broadcast_to(turns, (*x.shape[:-1], dim // 2)).reshape(-1, dim // 2)
    if not x.size or dim < 2:
        return None
    if params.get("lanes") == "trailing":
        x, y = x[..., -dim:], y[..., -dim:]
    positions = np.broadcast_to(positions, x.shape[:-1]).reshape(-1).astype(np.float64)
    x, y = x.reshape(-1, x.shape[-1]), y.reshape(-1, x.shape[-1])
    return Seen(x, y, params, dim, positions, turns, UNITS[question.dtype], JITTER[question.dtype])


def turned_in(seen: Seen) -> Turned | None:
    """Return the layout in which every pair has the same gain; None if there is none, or if several do and none was asked."""
    last = np.flatnonzero(np.any(seen.x != seen.y, axis=0))
    if not last.size or not np.all(np.isfinite(seen.y)):
        return None
    dims = dict.fromkeys(d for d in (seen.dim, (int(last[-1]) // 2 + 1) * 2) if last[-1] < d <= seen.x.shape[-1])
    if seen.turns is not None:
        dims = {seen.dim: None}
    fitting = [t for dim in dims for layout in LAYOUTS if (t := _in_layout(seen, layout, dim)) is not None]
    as_asked = [t for t in fitting if (t.layout, t.dim) == (seen.params["layout"], seen.dim)]
    if not fitting or (len(fitting) > 1 and not as_asked):
        return None
    return replace((as_asked or fitting)[0], alone=len(fitting) == 1)


def _in_layout(seen: Seen, layout: str, dim: int) -> Turned | None:
    """Return the phases in a layout, if they all have one gain there."""
    reads, writes = reads_writes(layout, seen.sign < 0)
    (a, b), (c, d) = members(dim // 2, reads), members(dim // 2, writes)
    given, got = seen.x[:, a] + 1j * seen.x[:, b], seen.y[:, c] + 1j * seen.y[:, d]
    if seen.turns is not None:
        given = given * np.abs(seen.turns)
    error = seen.unit * np.max(np.abs(seen.y), axis=-1, keepdims=True) / np.maximum(np.abs(given), 1e-300)
    usable = error < 0.25
    if not np.any(usable):
        return None
    ratio = np.where(usable, got / np.where(given == 0, 1, given), 0)
    weight = np.where(usable, 1 / np.maximum(error, 1e-300) ** 2, 0.0)
    gain = float(np.sum(weight * np.abs(ratio)) / np.sum(weight))
    if gain < 16 * seen.unit or np.any(np.abs(np.abs(ratio) - gain)[usable] > 2 * error[usable]):
        return None
    return _by_position(seen, layout, ratio / gain, weight * gain**2, gain)


def _by_position(seen: Seen, layout: str, ratio: Array, weight: Array, gain: float) -> Turned:
    """Return phases averaged over the rows of a position."""
    places = np.unique(seen.positions)
    index = np.searchsorted(places, seen.positions)
    phases, total = np.zeros((len(places), ratio.shape[1]), complex), np.zeros((len(places), ratio.shape[1]))
    np.add.at(phases, index, weight * ratio)
    np.add.at(total, index, weight)
    known = total > 0
    errors = np.where(known, 1 / np.sqrt(np.where(known, total, 1)), np.inf)
    return Turned(layout, 2 * ratio.shape[1], gain, places, phases / np.where(known, total, 1), errors, alone=False)


def frequencies(seen: Seen, dim: int) -> tuple[Array, float]:
    """Return the frequencies and the factor that were asked for, of `dim` rotated lanes."""
    options = {n: seen.params[n] for n in ("base", "scaling", "length") if n in seen.params}
    inv_freq, factor = posref.rope_frequencies(dim, **options)
    return np.asarray(inv_freq), float(factor)


def along_table(turn: Turned, turns: Array, sign: int) -> float:
    """Return 1 if phases are those of a given table, -1 if they are its opposites, and 0 if they are neither."""
    table = turns / np.abs(turns)
    error = 2 * turn.errors + 1e-15
    for direction in (1.0, -1.0):
        if np.all(np.abs(turn.phases - (table if sign * direction > 0 else np.conj(table))) <= error):
            return direction
    return 0.0


def fit(turn: Turned, inv_freq: Array, sign: int, jitter: float) -> tuple[Array, Array] | None:
    """Return scale, ratio of bases and offset, and their errors; None if the phases do not follow any."""
    phases = turn.phases if sign > 0 else np.conj(turn.phases)
    order = np.argsort(inv_freq)
    for slow in (order[:2], order[:-3:-1]):  # or the fastest are, where an exponent has the other sign
        start = _start(turn.positions, phases, inv_freq, slow)
        found = None if start is None else _refined(start, turn, phases, inv_freq, jitter)
        if found is not None:
            return found
    return None


def _refined(found: Array, turn: Turned, phases: Array, inv_freq: Array, jitter: float) -> tuple[Array, Array] | None:
    """Return the parameters that all phases agree with, and their errors, starting near them."""
    pair, known = np.arange(len(inv_freq)) / len(inv_freq), np.isfinite(turn.errors)
    free = [0, *[1] * (len(inv_freq) > 1), *[2] * (len(turn.positions) > 1)]
    spread, widest, largest = np.ones(3), 1.0, np.inf
    rest = error = np.empty(0)
    while widest < WIDENING * largest:
        scale, log_ratio, offset = found
        rates = scale * inv_freq * np.exp(-log_ratio * pair)
        angles = rates * (turn.positions[:, None] + offset)
        size = np.maximum(np.abs(angles), np.abs(rates))
        if not np.all(np.isfinite(size)) or scale == 0:
            return None
        chosen, largest = known & (size <= widest), float(np.max(size))
        slopes = np.stack([angles / scale, -angles * pair, np.broadcast_to(rates, angles.shape)], -1)[chosen]
        rest = np.angle(phases * np.exp(-1j * angles))[chosen]
        error = (2 * turn.errors + jitter * np.abs(angles))[chosen] + 1e-15
        if len(rest) >= len(free):
            step, spread = _least_squares(slopes / error[:, None], rest / error, free)
            found, rest = found + step, rest - slopes @ step
        widest *= WIDENING
    if not rest.size or not np.all(np.abs(rest) <= error):
        return None
    ratio = np.exp(found[1])
    return np.array([found[0], ratio, found[2]]), np.array([spread[0], ratio * spread[1], spread[2]])


def _least_squares(slopes: Array, rest: Array, free: list[int]) -> tuple[Array, Array]:
    """Return the step of the free parameters that takes up the rest, and their standard errors."""
    slopes = slopes[:, free]
    size = np.sqrt(np.sum(slopes**2, axis=0)) + 1e-300  # the parameters differ much in scale
    normal = np.linalg.pinv((slopes / size).T @ (slopes / size)) / np.outer(size, size)
    step, spread = np.zeros(3), np.zeros(3)
    step[free], spread[free] = normal @ (slopes.T @ rest), np.sqrt(np.maximum(np.diag(normal), 0))
    return step, spread


def _start(positions: Array, phases: Array, inv_freq: Array, slow: Array) -> Array | None:
    """Return scale, logarithm of the ratio of bases, and offset as the slowest pairs have them, whose angles have no turns."""
    first = int(np.argmin(np.abs(positions)))
    gaps = np.diff(positions)
    if gaps.size:
        near = np.flatnonzero(gaps == gaps.min())
        rates = np.angle(np.sum(phases[near + 1] * np.conj(phases[near]), axis=0)) / gaps.min()
    elif positions[0]:  # one position: taken to have no offset
        rates = np.angle(phases[0]) / positions[0]
    else:
        return None
    scales, log_ratio = rates[slow] / inv_freq[slow], 0.0
    if np.any(scales == 0) or np.any(np.sign(scales) != np.sign(scales[0])):
        return None
    pair = slow / len(inv_freq)
    if len(slow) > 1:
        log_ratio = float(np.diff(np.log(np.abs(scales)))[0] / (pair[0] - pair[1]))
    rate = rates[slow[0]]
    offset = np.angle(phases[first, slow[0]] * np.exp(-1j * rate * positions[first])) / rate if gaps.size else 0.0
    return np.array([scales[0] * np.exp(log_ratio * pair[0]), log_ratio, offset])
