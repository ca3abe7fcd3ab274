r"""
Recovers the parameters of an operation that rotates channel pairs from the phases of its outputs.

The parameters are layout, rotary_dim, gain, direction, base, and the scale and offset of positions. They are said only if the
definition, given them, reproduces the outputs of failing cases.

An output that rotates pairs has :math:`r = (y_a + i y_b)/(x_a + i x_b) = g e^{i \theta}` in the layout that it uses and in no
other. There |r| is the same gain everywhere, and its phase is

.. math:: \theta_{p,k} = c\,(p + \delta)\,f_k\,q^{-k/n}, \qquad k = 0 \dots n - 1

where f are the frequencies asked for. The sign of c is the direction and its size the scale; delta is the offset; the base is
q times the one asked for. Phases are known up to turns: the fit begins with angles too small to have any, and admits larger
ones as its parameters become more certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import posref
from posref.spec import REGISTRY

from ..evidence.shared.rotary import members, reads_writes
from ..evidence.tools.deviation import Deviation, Function
from ..model import Call, LoadedCase
from ..suite.tensors import Tensors
from .hypotheses import JITTER, UNITS, Hypothesis, Question, score

EXAMINED = 12  # failing cases whose phases are looked at, those with most pairs first
LEAST = 2  # cases that parameters must reproduce; positions must be more
LAYOUTS = ("half", "interleaved", "interleaved_to_half")
WIDENING = 4.0  # the largest angle admitted grows by this factor from fit to fit
Array = npt.NDArray[Any]


def given(op: str) -> str:
    """Return what the angles of an operation that rotates channel pairs come from; empty if it does not rotate them so."""
    arrays, options = set(REGISTRY[op].arrays), set(REGISTRY[op].domains)
    if arrays == {"x", "positions"} and {"layout", "base", "rotary_dim", "inverse"} <= options:
        return "positions"
    if arrays == {"x", "cos", "sin"}:
        return "table"
    return "matrix" if arrays == {"position"} and {"layout", "base"} <= options else ""


# ---- the gradient of a rotation, as a rotation -------------------------------------------------------------------------------


def as_rotation(case: LoadedCase) -> LoadedCase | None:
    """
    Return the rotation of the cotangent that a case's gradient of x is; None if it has none.

    With it every known mistake in a forward pass is a hypothesis about the backward pass too.
    """
    call = case.calls[0]
    if case.kind != "vjp" or given(case.op) not in ("positions", "table") or "x" not in call.expected:
        return None
    turned = Call(
        {**call.params, "inverse": not call.params.get("inverse", False)},
        {**call.inputs, "x": call.cotangents["out"]},
        {"out": call.expected["x"]},
        {},
        {accuracy: {"out": width["x"]} for accuracy, width in call.widths.items() if "x" in width},
        call.cotangents,
    )
    return replace(case, calls=(turned,))


def as_output(gradients: Tensors) -> Tensors:
    """Return the gradient of x as the output of that rotation."""
    return {"out": gradients["x"]}


# ---- parameters that explain the outputs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RotationFacts:
    """How a rotation differs from the one asked for; None is as asked."""

    layout: str | None = None
    rotary_dim: int | None = None
    base: float | None = None
    gain: float = 1.0
    scale: float = 1.0  # of positions; negative in the other direction
    offset: float = 0.0  # of positions, before the scale

    def changed(self) -> dict[str, Any]:
        """Return what is not as asked."""
        return {name: value for name, value in vars(self).items() if value != getattr(RotationFacts(), name)}

    def wrap(self, op: str) -> Any:
        """Return the wrap of an operation that changes its parameters to these."""
        return {"positions": self._positions, "matrix": self._matrix, "table": self._table}[given(op)]

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        names = ("layout", "rotary_dim", "base")
        return options | {n: getattr(self, n) for n in names if getattr(self, n) is not None}

    def _gained(self, out: Any, kept: int, lanes: str = "leading") -> Any:
        start = out.shape[-1] - kept if lanes == "trailing" else 0
        parts = [out[..., :start], self.gain * out[..., start : start + kept], out[..., start + kept :]]
        return np.concatenate(parts, axis=-1)

    def _positions(self, definition: Function) -> Function:
        def deviating(x: Any, positions: Any, /, **options: Any) -> Any:
            options = self._options(options)
            out = definition(x, self.scale * (positions + self.offset), **options)
            return self._gained(out, options.get("rotary_dim") or x.shape[-1], options.get("lanes", "leading"))

        return deviating

    def _matrix(self, definition: Function) -> Function:
        def deviating(position: Any, dim: int, /, **options: Any) -> Any:
            return self.gain * definition(self.scale * (position + self.offset), dim, **self._options(options))

        return deviating

    def _table(self, definition: Function) -> Function:
        def deviating(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
            out = definition(x, cos, np.copysign(1.0, self.scale) * sin, **self._options(options))
            return self._gained(out, 2 * cos.shape[-1], options.get("lanes", "leading"))

        return deviating


@dataclass(frozen=True)
class Recovered:
    """The parameters, in words, that give the outputs of failing cases, and whether they do so for all cases."""

    said: str = ""
    whole: bool = False  # whether they give the outputs of all cases, those that pass too
    deviation: Deviation | None = None
    questions: Sequence[Question] = ()  # the cases whose outputs they give


def recover(op: str, questions: Sequence[Question]) -> Recovered:
    """Return in words which parameters reproduce at least half of the failing cases; nothing where none do."""
    if not given(op):
        return Recovered()
    failing = [q for q in questions if q.failed]
    seen = [s for q in sorted(failing, key=_telling)[:EXAMINED] if (s := seen_in(q)) is not None]
    turned = [(turn, s) for s in seen if (turn := turned_in(s)) is not None]
    found = dict.fromkeys(f for turn, s in turned if (f := _facts(turn, s)) is not None and f.changed())
    tried = [(facts, _reproduced(facts, questions)) for facts in _candidates(found)]
    facts, cases = max(tried, key=lambda pair: len(pair[1]), default=(RotationFacts(), []))
    if 2 * len(cases) < len(failing) or not _believable(facts, cases):
        return Recovered()
    deviation = _deviation(op, facts)
    whole = len(cases) == len(failing) and Hypothesis(deviation, questions).fits()
    where = "" if whole else _where(cases, failing)
    return Recovered(f"{where}if {_said(facts, cases)}", whole, deviation, questions if whole else cases)


def _believable(facts: RotationFacts, cases: Sequence[Question]) -> bool:
    """Return whether facts reproduce several cases and, of numbers that positions show, several positions."""
    if len(cases) < LEAST:
        return False
    if facts.base is None and facts.offset == 0 and abs(facts.scale) == 1:
        return True
    places = [q.calls[0].inputs.get("positions", q.calls[0].inputs.get("position")) for q in cases]
    return len(np.unique(np.concatenate([np.ravel(p) for p in places if p is not None]))) > LEAST


def _telling(question: Question) -> tuple[bool, int]:
    """Return a key that puts cases without scaling first, and those with many pairs."""
    call = question.calls[0]
    size = call.params.get("rotary_dim") or call.expected["out"].shape[-1]
    return call.params.get("scaling") is not None, -int(size)


def _facts(turn: Turned, seen: CaseRows) -> RotationFacts | None:
    """Return how a rotation differs from the one asked for; None if no base, scale and offset give its phases."""
    layout = None if turn.layout == seen.params["layout"] else turn.layout
    if seen.turns is not None:
        direction = along_table(turn, seen.turns, seen.sign)
        return RotationFacts(layout, gain=_plain(turn.gain, 2 * seen.unit, 1.0), scale=direction) if direction else None
    inv_freq, factor = frequencies(seen, turn.dim)
    found = fit(turn, inv_freq, seen.sign, seen.jitter)
    if found is None:
        return None
    (scale, ratio, offset), (d_scale, d_ratio, d_offset) = found
    own = seen.params["base"]
    base = _plain(own * ratio, own * d_ratio, own)
    if base != own and seen.params.get("scaling") is not None:
        return None
    return RotationFacts(
        layout,
        rotary_dim=None if turn.dim == seen.dim else turn.dim,
        base=None if base == own else base,
        gain=_plain(turn.gain / factor, 2 * seen.unit, 1.0),
        scale=_scale(scale, d_scale),
        offset=_plain(offset, d_offset, 0.0),
    )


def _plain(value: float, error: float, usual: float) -> float:
    """Return the usual number if it is within three errors, else the shortest number that is."""
    shorter = (float(f"{value:.{digits}e}") for digits in range(12))
    return next((v for v in (usual, *shorter) if abs(value - v) <= 3 * error), value)


def _scale(value: float, error: float) -> float:
    """Return a scale in plain numbers: one, a short number, or one over a short number."""
    short, inverse = _plain(value, error, 1.0), _plain(1 / value, error / value**2, 1.0)
    return 1 / inverse if len(repr(inverse)) < len(repr(short)) else short


def _candidates(found: Iterable[RotationFacts]) -> Iterator[RotationFacts]:
    """Yield what single cases say, and what they say together: a case of the same base as the one used says nothing of it."""
    found = list(found)
    yield from found
    together = RotationFacts()
    for facts in found:
        together = replace(together, **facts.changed())
    if found and together not in found:
        yield together


def _reproduced(facts: RotationFacts, questions: Sequence[Question]) -> list[Question]:
    """Return the failing cases whose outputs the definition gives with these facts."""
    hypothesis = Hypothesis(_deviation(questions[0].op, facts), questions)
    return [q for n, q in enumerate(questions) if q.failed and score(q, q.found, hypothesis.predicted(n)) <= 1]


def _deviation(op: str, facts: RotationFacts) -> Deviation:
    return Deviation("recovered", "", {op: facts.wrap(op)})


def _where(cases: Sequence[Question], failing: Sequence[Question]) -> str:
    """Return which failing cases facts reproduce, in words."""
    if len(cases) == len(failing):
        return "in the failing cases, "
    return f"in {len(cases)} of {len(failing)} failing cases ({cases[0].id}, ...), "


def _said(facts: RotationFacts, cases: Sequence[Question]) -> str:
    """Return facts that reproduce cases, in words."""

    def asked(name: str) -> str:
        values = list(dict.fromkeys(_option(q, name) for q in cases))
        return f"asked: {', '.join(values[:3])}{', ...' * (len(values) > 3)}"

    size = abs(facts.scale)
    words = {
        f"the layout is {facts.layout!r} ({asked('layout')})": facts.layout is not None,
        f"rotary_dim is {facts.rotary_dim} ({asked('rotary_dim')})": facts.rotary_dim is not None,
        f"the frequencies are those of base {facts.base or 0:.9g} ({asked('base')})": facts.base is not None,
        f"the gain is {facts.gain:.9g} times what it should be": facts.gain != 1,
        "the rotation is by the negative angle": facts.scale < 0,
        f"positions are offset by {facts.offset:.9g}": facts.offset != 0,
        f"positions are {'then ' * bool(facts.offset)}{_multiplied(size)}": size != 1,
    }
    return "; ".join(word for word, true in words.items() if true)


def _option(question: Question, name: str) -> str:
    """Return an option of a case in words."""
    value = question.calls[0].params.get(name)
    if value is None:  # rotary_dim is the whole head
        value = question.calls[0].expected["out"].shape[-1]
    return value if isinstance(value, str) else f"{value:.9g}"


def _multiplied(size: float) -> str:
    return f"multiplied by {size:.9g}" if len(f"{size:.9g}") <= len(f"{1 / size:.9g}") else f"divided by {1 / size:.9g}"


# ---- the phases of one call --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CaseRows:
    """The first call of a case by rows: its x, its output and its options."""

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


def seen_in(question: Question) -> CaseRows | None:
    """Return the first call of a case; None where it has no pair to look at."""
    call, y = question.calls[0], question.answer.outputs[0]["out"].astype(np.float64)
    params, turns = dict(call.params), None
    if given(question.op) == "matrix":  # it rotates a vector
        x = np.cos(np.arange(1.0, y.shape[-1] + 1)) + 2
        y, positions = y @ x, call.inputs["position"]
        x = np.broadcast_to(x, y.shape)
    else:
        x = call.inputs["x"].astype(np.float64)
        positions = call.inputs.get("positions", np.arange(x[..., 0].size).reshape(x.shape[:-1]))
    dim = params.get("rotary_dim") or x.shape[-1]
    if given(question.op) == "table":
        turns = call.inputs["cos"] + 1j * call.inputs["sin"]
        dim = 2 * turns.shape[-1]
        turns = np.broadcast_to(turns, (*x.shape[:-1], dim // 2)).reshape(-1, dim // 2)
    if not x.size or dim < 2:
        return None
    if params.get("lanes") == "trailing":
        x, y = x[..., -dim:], y[..., -dim:]
    positions = np.broadcast_to(positions, x.shape[:-1]).reshape(-1).astype(np.float64)
    x, y = x.reshape(-1, x.shape[-1]), y.reshape(-1, x.shape[-1])
    return CaseRows(x, y, params, dim, positions, turns, UNITS[question.dtype], JITTER[question.dtype])


def turned_in(seen: CaseRows) -> Turned | None:
    """Return the layout in which every pair has one gain; None without one, or with several that are not the call's."""
    last = np.flatnonzero(np.any(seen.x != seen.y, axis=0))
    if not last.size or not np.all(np.isfinite(seen.y)):
        return None
    dims = dict.fromkeys(d for d in (seen.dim, (int(last[-1]) // 2 + 1) * 2) if last[-1] < d <= seen.x.shape[-1])
    if seen.turns is not None:
        dims = {seen.dim: None}
    fitting = [t for dim in dims for layout in LAYOUTS if (t := _in_layout(seen, layout, dim)) is not None]
    same = [t for t in fitting if (t.layout, t.dim) == (seen.params["layout"], seen.dim)]
    if not fitting or (len(fitting) > 1 and not same):
        return None
    return (same or fitting)[0]


def _in_layout(seen: CaseRows, layout: str, dim: int) -> Turned | None:
    """Return the phases in a layout, if they all have one gain there."""
    reads, writes = reads_writes(layout, seen.sign < 0)
    (a, b), (c, d) = members(dim // 2, reads), members(dim // 2, writes)
    ahead, got = seen.x[:, a] + 1j * seen.x[:, b], seen.y[:, c] + 1j * seen.y[:, d]
    if seen.turns is not None:
        ahead = ahead * np.abs(seen.turns)
    error = seen.unit * np.max(np.abs(seen.y), axis=-1, keepdims=True) / np.maximum(np.abs(ahead), 1e-300)
    usable = error < 0.25
    if not np.any(usable):
        return None
    ratio = np.where(usable, got / np.where(ahead == 0, 1, ahead), 0)
    weight = np.where(usable, 1 / np.maximum(error, 1e-300) ** 2, 0.0)
    gain = float(np.sum(weight * np.abs(ratio)) / np.sum(weight))
    if gain < 16 * seen.unit or np.any(np.abs(np.abs(ratio) - gain)[usable] > 2 * error[usable]):
        return None
    return _by_position(seen, layout, ratio / gain, weight * gain**2, gain)


def _by_position(seen: CaseRows, layout: str, ratio: Array, weight: Array, gain: float) -> Turned:
    """Return phases averaged over the rows of a position."""
    places = np.unique(seen.positions)
    index = np.searchsorted(places, seen.positions)
    phases, total = np.zeros((len(places), ratio.shape[1]), complex), np.zeros((len(places), ratio.shape[1]))
    np.add.at(phases, index, weight * ratio)
    np.add.at(total, index, weight)
    known = total > 0
    errors = np.where(known, 1 / np.sqrt(np.where(known, total, 1)), np.inf)
    return Turned(layout, 2 * ratio.shape[1], gain, places, phases / np.where(known, total, 1), errors)


def frequencies(seen: CaseRows, dim: int) -> tuple[Array, float]:
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
