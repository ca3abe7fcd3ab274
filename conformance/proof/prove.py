"""
Two witnesses: what a call must give, proved by the definition on balls and by a transcription that shares no code with it.

`golden` and `half_widths` work for every registered definition, so that a new one gets expected values and tolerances with no
new code; `disagreement` needs a transcription in `posref.conformance.witness`. All of them work for gradients too, given
a `Pullback`: the definition is differentiated backwards (`posref.backends.adjoints`), the transcription by divided differences.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from posref.backends import exact
from posref.backends.bounds import Bounds, Sensitivity, bounds, rounded_up
from posref.backends.numbers import Array, Undecided
from posref.core.composition import Function, Observed, called
from posref.scaling import Scaling
from posref.spec import PARTS, REGISTRY

from ..calls import bind
from ..errors import BuildError
from ..model import Arrays
from .running import Pullback, as_reals, call_of, encoding_of, results_of

WITNESS_BITS = (256, 4096)
DIFFERENCES = ((640, 120), (2600, 600))  # bits, and the step 2^-n: an error of 2^-2n; the second proves zeros too


def golden_with_stages(op: str, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> tuple[Arrays, Arrays]:
    """Return what is true, and the proved values of the stages on the way: of what both witnesses call, once each."""
    record = REGISTRY[op]
    names: list[str] = []
    shared = _shared(op)

    def call() -> tuple[Any, ...]:
        observed = Observed(record.function, shared)
        found = call_of(exact.exact, op, inputs, params, observed.function)
        mid = observed.outputs()
        if record.equals and not shared <= set(called(record.function)):  # stages of what it equals alone
            other = Observed(record.equals, shared - set(called(record.function)), ends=set(PARTS))
            call_of(exact.exact, op, inputs, params, other.function)
            mid |= other.outputs()
        names[:] = mid
        return (*found.values(), *mid.values())

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
    own = {*called(record.function), *(called(record.equals) if record.equals else ())}
    return frozenset(own & set(called(_transcription(op))))


def half_widths(
    op: str | Callable[..., Any], inputs: Mapping[str, Any], params: Mapping[str, Any], accuracy: str, expected: Arrays,
    pullback: Pullback | None = None,
) -> Arrays:  # fmt: skip
    """
    Return how far an honest implementation of an accuracy class may be from `expected`, as float32 rounded up.

    Raises
    ------
    BuildError
        If a discrete decision lies within the class's error of its threshold: such a case has no single answer.
    """
    record = encoding_of(op)
    try:
        found = _errors(bounds(accuracy), record.name, inputs, params, pullback)
    except Undecided as error:
        msg = f"{record.name}: a decision lies within the error of class {accuracy}: {error}."
        raise BuildError(msg) from error
    own = {name: np.where(error > 0, 2.0**-53 * np.abs(expected[name]), 0.0) for name, error in found.items()}
    return {  # expected itself is rounded once
        name: rounded_up(np.broadcast_to(error + own[name], expected[name].shape)) for name, error in found.items()
    }


def sensitivity(
    op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], expected: Arrays, pullback: Pullback | None = None
) -> Arrays:
    """Return how far results may move for each unit of absolute error of sines and cosines; only results that do."""
    found = _errors(Sensitivity(), op, inputs, params, pullback)
    moved = {name: error / Sensitivity.SMALL for name, error in found.items() if np.any(error)}
    return {name: rounded_up(np.broadcast_to(size, expected[name].shape)) for name, size in moved.items()}


def _errors(system: Bounds, op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], pullback: Pullback | None) -> Arrays:
    """Return the error bounds of a definition's results that are reals."""
    outputs = results_of(system, op, inputs, params, pullback)
    reals = {n: x for n, x in outputs.items() if not isinstance(x, Array) or x.dtype.kind == "real floating"}
    return {name: as_reals(output, system).parts[1] for name, output in reals.items()}


def disagreement(
    op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], found: Arrays, mid: Arrays,
    pullback: Pullback | None = None,
) -> str | None:  # fmt: skip
    """Return where the transcription differs from the definition's values `found` and stages `mid`, or None if nowhere."""
    if all(value.size == 0 for value in found.values()):
        return None  # nested lists without elements do not even say their shape
    problem = None
    for told in _told(op, inputs, params, bool(mid), pullback):
        problem = _compare({"out": found, "mid": mid}, told)
        if problem is None:
            return None
    return problem


def _told(
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

    found = {}
    for name in pullback.wrt:
        start = [inputs[name]]
        (found[name],) = slopes(name, start, start)
    return found


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
    given = {f.name: getattr(value, f.name) for f in fields(value)}
    defaults = {f.name: f.default for f in fields(value)}
    return {"type": type(value).__name__, **{n: v for n, v in given.items() if v != defaults[n]}}


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
