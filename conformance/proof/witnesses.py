"""
Two witnesses prove what a call must give: the definition on balls, and a transcription that shares no code with it.

`golden` and `half_widths` work for every registered definition, so that a new one gets expected values and tolerances with no
new code; `disagreement` needs a transcription in `posref.conformance.witness`. All of them work for gradients too, given
a `Pullback`: the definition is differentiated backwards (`posref.backends.adjoints`), the transcription by divided differences.
"""

import itertools
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from posref.backends import exact
from posref.backends.bounds import Sensitivity, bounds
from posref.backends.numbers import Undecided
from posref.core.composition import Function, Observed, called
from posref.scaling import Scaling
from posref.spec import PARTS, REGISTRY

from ..accuracy import BASE
from ..calls import bind
from ..errors import BuildError, Disagreement, TargetError
from ..model import Arrays
from ..vocabulary.axes import LEAST, Rows, Selection, rows_of
from .evaluation import Pullback, call_of, decided, encoding_of, errors_of, golden, result_placeholders, sensitivity, widths_of

WITNESS_BITS = (256, 4096)
DIFFERENCES = ((640, 120), (2600, 600))  # bits, and the step 2^-n: an error of 2^-2n; the second proves zeros too


PART, TRIAL = 1 << 15, 1 << 13  # values of a part, and of a trial; a term of a sum counts as one
SECONDS = {1: 5e-6, 2: 2e-5}  # for each of them, by witnesses, where no trial says it
OF_PART, OF_VALUE, OF_PROCESS = 2048, 256, 1 << 27  # bytes
SHARE = 0.75  # of the machine's memory
Shapes = dict[str, tuple[int, ...]]
Show = Callable[[str, int | None], None]
Proof = tuple[Arrays, Arrays, dict[str, Arrays]]  # expected values, stages, half-widths by class


def golden_with_stages(op: str, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> tuple[Arrays, Arrays]:
    """Return the proved values, and those of the stages that both witnesses call, once each."""
    record = REGISTRY[op]
    names: list[str] = []
    shared = _shared(op)

    def call() -> tuple[Any, ...]:
        observed = Observed(record.function, shared)
        outputs = call_of(exact.exact, op, inputs, params, observed.function)
        mid = observed.outputs()
        if record.equals and not shared <= set(called(record.function)):  # stages of what it equals alone
            other = Observed(record.equals, shared - set(called(record.function)), ends=set(PARTS))
            call_of(exact.exact, op, inputs, params, other.function)
            mid |= other.outputs()
        names[:] = mid
        return (*outputs.values(), *mid.values())

    try:
        values = exact.evaluate(call)
    except IndexError as error:  # of a table that has no such row
        msg = f"golden: {op} does not take this call: {error}."
        raise BuildError(msg) from error
    count = len(record.outputs)
    out, mid = values[:count], values[count:]
    plain = (v.astype(np.int64) if v.dtype.kind == "b" else v for v in out)
    return dict(zip(record.outputs, plain, strict=True)), dict(zip(names, mid, strict=True))


def _shared(op: str) -> frozenset[str]:
    """Return the known functions that the definition, or what it equals, and the transcription both call."""
    record = REGISTRY[op]
    functions = {*called(record.function), *(called(record.equals) if record.equals else ())}
    return frozenset(functions & set(called(_transcription(op))))


def half_widths(
    op: str | Callable[..., Any], inputs: Mapping[str, Any], params: Mapping[str, Any], accuracy: str, expected: Arrays,
    pullback: Pullback | None = None, *, formulas: bool = True,
) -> Arrays:  # fmt: skip
    """
    Return how far an honest implementation of an accuracy class may be from `expected`, as float32 rounded up.

    Without `formulas` only those that the definition itself uses are meant, not the second ones of `either`. So it is also
    where these leave a decision open.

    `BuildError` if a discrete decision lies within the class's error of its threshold: such a case has no single answer.
    """
    record = encoding_of(op)
    system = bounds(accuracy) if formulas else bounds(accuracy).of_first_formulas()
    try:
        errors = decided(system, lambda system: errors_of(system, record.name, inputs, params, pullback))
    except Undecided as error:
        msg = f"{record.name}: a decision lies within the error of class {accuracy}: {error}."
        raise BuildError(msg) from error
    return widths_of(errors, expected)


def disagreement(
    op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], found: Arrays, mid: Arrays, pullback: Pullback | None = None
) -> str | None:
    """Return where the transcription differs from the definition's values `found` and stages `mid`, or None if nowhere."""
    if all(value.size == 0 for value in found.values()):
        return None  # nested lists without elements do not even say their shape
    problem = None
    for transcribed in _transcriptions(op, inputs, params, bool(mid), pullback):
        problem = _compare({"out": found, "mid": mid}, transcribed)
        if problem is None:
            return None
    return problem


def _transcriptions(
    op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], staged: bool, pullback: Pullback | None
) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield what the transcription gives, outputs and stages as nested lists, at one precision after the other."""
    for bits, step in DIFFERENCES if pullback else ((bits, 0) for bits in WITNESS_BITS):
        with mpmath.workprec(bits):
            lists = {name: _to_lists(value) for name, value in inputs.items()}
            options = {name: _option(value) for name, value in params.items()}
            if pullback:
                yield {"out": _differences(op, lists, options, pullback, mpmath.ldexp(1, -step)), "mid": {}}
            else:
                observed = Observed(_transcription(op), _shared(op) if staged else frozenset())
                yield {"out": _transcribed(op, lists, options, observed.function), "mid": observed.outputs()}


def _compare(found: dict[str, Arrays], told: dict[str, dict[str, Any]]) -> str | None:
    """Return the first difference between the definition's values and what the transcription gives."""
    for role, arrays in found.items():
        for name, value in arrays.items():
            other = _from_lists(told[role][name], value)
            if other.shape != value.shape:
                return f"{role}/{name}: shape {value.shape} from the definition, {other.shape} from the transcription"
            if not np.array_equal(other, value):
                index = tuple(int(i) for i in np.argwhere(other != value)[0])
                place, pair = f"{role}/{name}{list(index)}", (value[index].item(), other[index].item())
                return f"{place}: {pair[0]!r} from the definition, {pair[1]!r} from the transcription"
    return None


def _differences(op: str, inputs: dict[str, Any], params: dict[str, Any], pullback: Pullback, step: Any) -> dict[str, Any]:
    """Return the gradients of a transcription as nested lists, by central differences of the sum of cotangent x output."""
    cotangents = {name: _flat(_to_lists(value)) for name, value in pullback.cotangents.items()}

    def slopes(name: str, nested: list[Any], start: list[Any]) -> list[Any]:
        """Return the differences in every number of `nested`, a part of the input that is the one element of `start`."""

        def total(i: int, number: Any) -> Any:
            before, nested[i] = nested[i], number
            outputs = _transcribed(op, {**inputs, name: start[0]}, params)
            nested[i] = before
            return mpmath.fsum(c * y for n, cs in cotangents.items() for c, y in zip(cs, _flat(outputs[n]), strict=True))

        return [
            slopes(name, x, start) if isinstance(x, list) else (total(i, x + step) - total(i, x - step)) / (2 * step)
            for i, x in enumerate(nested)
        ]

    differences = {}
    for name in pullback.wrt:
        start = [inputs[name]]
        (differences[name],) = slopes(name, start, start)
    return differences


def _flat(nested: Any) -> list[Any]:
    """Return the elements of nested lists in order."""
    return [leaf for row in nested for leaf in _flat(row)] if isinstance(nested, list) else [nested]


def _transcription(op: str) -> Function:
    """Return the transcription of an operation."""
    name = f"posref.conformance.witness.{op}"
    function: Function | None = None
    try:
        function = getattr(import_module(name), op, None)
    except ModuleNotFoundError as error:
        if error.name != name:  # what the transcription imports is missing
            raise
    if function is None:
        msg = f"{op} has no second witness: write the function {op} in conformance/witness/{op}.py."
        raise BuildError(msg)
    return function


def _transcribed(
    op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], function: Function | None = None
) -> dict[str, Any]:
    """Return the outputs by name of a transcription, or of a `function` in its place."""
    positional, keywords = bind(op, inputs, params)
    outputs = (function or _transcription(op))(*positional, **keywords)
    names = REGISTRY[op].outputs
    return dict(zip(names, outputs if len(names) > 1 else (outputs,), strict=True))


def _option(value: Any) -> Any:
    """Return an option as transcriptions take it: a scaling as a plain dict, without the fields at their defaults."""
    if not isinstance(value, Scaling):
        return value
    values = {f.name: getattr(value, f.name) for f in fields(value)}
    defaults = {f.name: f.default for f in fields(value)}
    return {"type": type(value).__name__, **{n: v for n, v in values.items() if v != defaults[n]}}


def _to_lists(value: Any) -> Any:
    """Return an array as nested lists of mpmath reals, ints or bools."""
    host = np.asarray(value)
    if host.ndim:
        return [_to_lists(row) for row in host]
    item = host.item()
    return mpmath.mpf(item) if isinstance(item, float) else item


def _from_lists(value: Any, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return nested lists as an array like the definition's, reals rounded to the nearest float64."""

    def shape(nested: Any) -> tuple[int, ...]:
        if not isinstance(nested, list):
            return ()
        return (len(nested), *(shape(nested[0]) if nested else ()))

    leaves = _flat(value)
    if like.size == 0 and not leaves:
        return np.zeros(like.shape, like.dtype)  # empty lists do not say their inner axes
    convert = float if like.dtype.kind == "f" else int
    return np.asarray([convert(leaf) for leaf in leaves], dtype=like.dtype).reshape(shape(value))


# ---- the proof of a call --------------------------------------------------------------------------------------------------
def proved(
    op: str, inputs: Arrays, params: Mapping[str, Any], pullback: Pullback | None = None, *, witnesses: int = 2
) -> Proof:
    """
    Return a call's expected values, stages and half-widths by class, and as "trig" its sensitivity to sines and cosines.

    The second of two `witnesses` may be left out. With a `pullback` the expected values are gradients, by the names of inputs,
    and there are no stages.

    `BuildError` if the two witnesses disagree or a decision lies within its tolerance.
    """
    if pullback is None:
        expected, mid = golden_with_stages(op, inputs, params)
    else:
        expected, mid = golden(op, inputs, params, pullback), {}
    problem = disagreement(op, inputs, params, expected, mid, pullback) if witnesses > 1 else None
    if problem:
        msg = f"the witnesses disagree at {problem}."
        raise Disagreement(msg)
    widths: dict[str, Arrays] = {}
    for accuracy in BASE:
        low = accuracy.startswith("low-")
        try:
            half = half_widths(op, inputs, params, accuracy, expected, pullback)
        except BuildError:
            if not low:  # at 8 bits nothing may be left to say: then it is not asked there
                raise
            continue
        if low and pullback and not _rules_out_zeros(half, expected):
            half = half_widths(op, inputs, params, accuracy, expected, pullback, formulas=False)
        if not (low and pullback) or _rules_out_zeros(half, expected):
            widths[accuracy] = half
    return expected, mid, widths | sensitivity(Sensitivity(), op, inputs, params, expected, pullback)


def _rules_out_zeros(widths: Arrays, expected: Arrays) -> bool:
    """Return whether half-widths rule out an answer of zeros, for every gradient that is not zero."""
    return all(not np.any(value) or np.any(np.abs(value) > widths[name]) for name, value in expected.items())


# ---- proofs of large calls: parts of their rows in several processes, put together ------------------------------------------
@dataclass(frozen=True)
class Effort:
    """What may be spent on a proof: witnesses, processes (by default one a core), and minutes."""

    witnesses: int = 2
    jobs: int | None = None
    minutes: float = 10.0
    stages: bool = False  # of a large call too, which is then proved in one piece


def proved_in_parts(op: str, inputs: Arrays, params: Mapping[str, Any], effort: Effort, show: Show | None = None) -> Proof:
    """
    Return what `proved` gives, part by part.

    A call of several parts has no stages, unless they are asked for: then it is proved in one piece. Which parts there are
    depends on the call alone, so that the result does not depend on the machine.

    Raise TargetError if it would take more time or memory than there is: with an estimate. Raise BuildError if the
    witnesses disagree, or a decision lies within its tolerance.
    """
    shapes = shapes_of(op, inputs, params)
    rows = rows_of(op, inputs, params, shapes)
    values = _values(shapes)
    _require_memory(op, values, values * OF_VALUE)
    parts = [{}] if effort.stages else _split(rows, shapes, PART)
    count = _processes(effort, len(parts))
    _require_memory(op, values, values * OF_VALUE + count * (OF_PROCESS + _cost(rows, shapes, parts[0]) * OF_PART))
    if _cost(rows, shapes, {}) > PART:
        _require_time(op, values, _seconds(op, inputs, params, rows, shapes, effort.witnesses) / count / 60, effort)
    if len(parts) == 1:
        if show:
            show(op, 1)
        return proved(op, inputs, params, witnesses=effort.witnesses)
    tasks = {
        f"part {k} of {len(parts)} of {op}": (op, rows.cut(inputs, part), params, effort.witnesses)
        for k, part in enumerate(parts, 1)
    }
    of_parts = []
    from .workers import each

    with each(_of_part, tasks, count if count > 1 else 0) as proofs:
        for proof in proofs:
            of_parts.append(proof)
            if show:
                show(op, len(parts))
    return _together(rows, shapes, parts, of_parts)


def _processes(effort: Effort, parts: int) -> int:
    """Return how many processes prove so many parts: less than two parts take less time than a process takes to start."""
    if parts < 4:
        return 1
    from .workers import cores

    return min(effort.jobs or cores(), parts // 2)


def _of_part(op: str, inputs: Arrays, params: Mapping[str, Any], witnesses: int) -> tuple[Arrays, dict[str, Arrays]]:
    expected, _, widths = proved(op, inputs, params, witnesses=witnesses)
    return expected, widths


def shapes_of(op: str, inputs: Arrays, params: Mapping[str, Any]) -> Shapes:
    """Return the shapes of a call's results."""
    return {n: x.shape for n, x in result_placeholders(op, inputs, params).items()}


def _values(shapes: Shapes) -> int:
    return sum(map(math.prod, shapes.values()))


def _cost(rows: Rows, shapes: Shapes, selection: Selection) -> int:
    return rows.cost(_values(shapes), selection).terms


def _split(rows: Rows, shapes: Shapes, most: int) -> list[Selection]:
    """Return the parts of a call, of at most `most` values where its rows allow it."""
    needed = -(-_cost(rows, shapes, {}) // most)
    cuts: dict[Any, list[Any]] = {}
    for key, size in sorted(rows.sizes.items(), key=lambda item: -item[1]):
        pieces = min(size // LEAST, needed)
        if pieces > 1:
            cuts[key] = np.array_split(np.arange(size), pieces)
            needed = -(-needed // pieces)
    return [dict(zip(cuts, indices, strict=True)) for indices in itertools.product(*cuts.values())]


def _together(rows: Rows, shapes: Shapes, parts: list[Selection], found: list[tuple[Arrays, dict[str, Arrays]]]) -> Proof:
    """Return the results and half-widths of all parts as those of the whole."""
    first, widths = found[0]
    expected = {n: np.empty(shapes[n], x.dtype) for n, x in first.items()}
    kept = [c for c in widths if c == "trig" or all(c in of_part for _, of_part in found)]
    kept += ["trig"] if "trig" not in kept and any("trig" in of_part for _, of_part in found) else []
    names = {c: dict.fromkeys(n for _, of_part in found for n in of_part.get(c, {})) for c in kept}
    whole = {c: {n: np.zeros(shapes[n], np.float32) for n in names[c]} for c in kept}
    for part, (values, of_part) in zip(parts, found, strict=True):
        for name, value in values.items():
            where = rows.indices(name, shapes[name], part)
            expected[name][where] = value
            for c in kept:
                if name in of_part.get(c, {}):  # what does not move with sines and cosines has no entry
                    whole[c][name][where] = of_part[c][name]
    return expected, {}, whole


# ---- estimates ------------------------------------------------------------------------------------------------------------
def memory() -> float:
    """Return the bytes of this machine's memory; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows
        return float("inf")


def _require_memory(op: str, values: int, needed: float) -> None:
    """Raise unless a request fits into memory."""
    spare = SHARE * memory()
    if needed > spare:
        msg = (
            f"golden: {op} of {values} values would take about {needed / 2**30:.1f} GiB of memory; {spare / 2**30:.1f} GiB may "
            "be used. Ask for fewer positions or heads, or with --jobs for fewer processes."
        )
        raise TargetError(msg)


def _require_time(op: str, values: int, minutes: float, effort: Effort) -> None:
    """Raise unless a request takes no longer than it may."""
    if minutes > effort.minutes:
        msg = (
            f"golden: {op} of {values} values would take about {_about(minutes)} minutes and "
            f"{max(values * OF_VALUE / 2**30, 0.1):.1f} GiB of memory; --minutes allows {effort.minutes:g}. Ask for fewer "
            f"positions or heads{', or for --witnesses 1' if effort.witnesses > 1 else ''}."
        )
        raise TargetError(msg)


def _about(minutes: float) -> str:
    return f"{minutes:.0f}" if minutes >= 10 else f"{minutes:.2g}"


def _seconds(op: str, inputs: Arrays, params: Mapping[str, Any], rows: Rows, shapes: Shapes, witnesses: int) -> float:
    """Return how long one process takes, from the time of a few rows."""
    trial = _split(rows, shapes, TRIAL)[0]
    cost, whole = _cost(rows, shapes, trial), _cost(rows, shapes, {})
    if not trial or cost > PART:
        return whole * SECONDS[witnesses]
    arrays = rows.cut(inputs, trial)
    begin = time.perf_counter()
    proved(op, arrays, params, witnesses=witnesses)
    return (time.perf_counter() - begin) * whole / max(cost, 1)
