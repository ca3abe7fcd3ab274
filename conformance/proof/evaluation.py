"""
Runs a definition in a number system: outputs or gradients, true values, and the error that an accuracy class allows.

With how many bits the truth is tried is in `posref.backends.exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from posref.backends.bounds import Bounds, Sensitivity, rounded_up
from posref.backends.numbers import Array, Undecided
from posref.backends.rounding import LARGEST, representable
from posref.core.arrays import numpy_namespace
from posref.core.composition import Function, makes_frequencies
from posref.spec import REGISTRY, Encoding

from ..accuracy import OF_DTYPE, ROUNDING
from ..calls import bind, given_dtype, is_wide, makes_constants, positions_of, takes_dtype
from ..errors import BuildError, no_operation
from ..model import Arrays, Call
from ..vocabulary.axes import LEAST, rows_of

R = TypeVar("R")


@dataclass(frozen=True)
class Pullback:
    """A call of a gradient: the cotangents of the outputs, and the inputs in which to differentiate."""

    cotangents: Arrays
    wrt: tuple[str, ...]


def pullback_of(call: Call) -> Pullback | None:
    """Return what a call asks of gradients; None if it asks for values."""
    return Pullback(call.cotangents, tuple(call.expected)) if call.cotangents else None


def encoding_of(op: str | Callable[..., Any]) -> Encoding:
    """Return the registry's record of an operation, given by name or function."""
    name = op if isinstance(op, str) else op.__name__
    if name not in REGISTRY:
        raise BuildError(no_operation("op", name))
    return REGISTRY[name]


def golden(
    op: str | Callable[..., Any], inputs: Mapping[str, Any], params: Mapping[str, Any], pullback: Pullback | None = None
) -> Arrays:
    """Return what is true: the definition on balls, each value proved to be the nearest float64 (masks as 0 and 1)."""
    from posref.backends import exact  # needs python-flint

    record = encoding_of(op)

    def call() -> tuple[Any, ...]:
        return tuple(results_of(exact.exact, record.name, inputs, params, pullback).values())

    names = record.outputs if pullback is None else pullback.wrt
    values = (v.astype(np.int64) if v.dtype.kind == "b" else v for v in exact.evaluate(call))
    return dict(zip(names, values, strict=True))


def enclosed(op: str, call: Call, pullback: Pullback | None, enough: Arrays) -> dict[str, tuple[Any, Any]]:
    """Return midpoints and radii of a definition's results on balls, by name; no rounding is proved, so ties do not matter."""
    from posref.backends import exact  # needs python-flint

    def results() -> tuple[Any, ...]:
        return tuple(results_of(exact.exact, op, call.inputs, call.params, pullback).values())

    names = REGISTRY[op].outputs if pullback is None else pullback.wrt
    return dict(zip(names, exact.enclosed(results, [enough[name] for name in names]), strict=True))


@np.errstate(all="ignore")  # what overflowed has a bound that is not a number
def results_of(
    system: Any, op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], pullback: Pullback | None
) -> dict[str, Any]:
    """Return a definition's outputs by name, or its gradients by the name of the input, computed in a number system."""
    if pullback is None:
        return call_of(system, op, inputs, params)
    from posref.backends.adjoints import Adjoints

    adjoints = Adjoints(system)
    results = _gradients(adjoints, op, inputs, params, pullback)
    if not adjoints.alternatives:
        return results

    @cache
    def other() -> dict[str, Any]:
        return _gradients(Adjoints(system, second=True), op, inputs, params, pullback)

    return {name: system.either(x, lambda name=name: other()[name]) for name, x in results.items()}


def _gradients(
    adjoints: Any, op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], pullback: Pullback
) -> dict[str, Any]:  # fmt: skip
    """Return gradients by the name of the input, computed over the base of `adjoints`."""
    system = adjoints.base
    leaves = {name: adjoints.leaf(to_system(system, op, name, inputs[name])) for name in pullback.wrt}
    outputs = call_of(adjoints, op, {**inputs, **leaves}, params)
    cotangents = [system.asarray(pullback.cotangents[name], dtype=x.dtype) for name, x in outputs.items()]
    gradients = adjoints.pull_back(list(outputs.values()), cotangents, list(leaves.values()))
    return dict(zip(leaves, gradients, strict=True))


def call_of(
    system: Any, op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], function: Function | None = None
) -> dict[str, Any]:
    """Return the outputs by name of a definition, or of a `function` in its place, computed in a number system."""
    record = REGISTRY[op]
    arrays = {name: to_system(system, op, name, value) for name, value in inputs.items()}
    positional, keywords = bind(op, arrays, params)
    if makes_constants(op):
        keywords["xp"] = system
        if makes_frequencies(op):
            keywords["dtype"] = system.frequencies
    elif takes_dtype(op):
        keywords["dtype"] = system.storage
    outputs = (function or record.function)(*positional, **keywords)
    return dict(zip(record.outputs, outputs if len(record.outputs) > 1 else (outputs,), strict=True))


def to_system(system: Any, op: str, name: str, value: Any) -> Any:
    """Return an input in a number system: positions and frequencies wide, other reals in storage."""
    if isinstance(value, Array):
        return value
    host = np.asarray(value)
    if host.dtype.kind in "iub":
        return system.asarray(host)
    return system.asarray(host, dtype=system.float64 if is_wide(op, name) else system.storage)


def as_reals(value: Any, system: Bounds) -> Array:
    """Return a result that is a Python number as an array of `system`, too."""
    return value if isinstance(value, Array) else system.asarray(float(value), dtype=system.float64)


def errors_of(
    system: Bounds, op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], pullback: Pullback | None
) -> Arrays:  # fmt: skip
    """Return the error bounds of those of a call's results that are reals."""
    results = {name: as_reals(x, system) for name, x in results_of(system, op, inputs, params, pullback).items()}
    return {name: x.parts[1] for name, x in results.items() if x.dtype.kind == "real floating"}


def sensitivity(
    system: Sensitivity, op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], expected: Arrays,
    pullback: Pullback | None,
) -> dict[str, Arrays]:  # fmt: skip
    """Return by the name "trig" how far results move with each unit of error of sines and cosines; only those that do."""
    errors = {n: error for n, error in errors_of(system, op, inputs, params, pullback).items() if np.any(error)}
    moved = {n: rounded_up(np.broadcast_to(error / system.SMALL, expected[n].shape)) for n, error in errors.items()}
    return {"trig": moved} if moved else {}


def askable(op: str, inputs: Arrays, expected: Arrays, form: str = "") -> list[str]:
    """Return the dtypes that hold every real input exactly and every output within their range."""
    largest = _largest(op, inputs, expected)
    return [dtype for dtype in OF_DTYPE if largest <= LARGEST[dtype] and is_askable(op, inputs, {}, dtype, form)]


def is_askable(op: str, inputs: Arrays, expected: Arrays, dtype: str, form: str = "") -> bool:
    """Return whether a dtype holds every real input exactly and every output within its range."""
    if not all(representable(v, given_dtype(op, n, dtype, form)) for n, v in inputs.items() if v.dtype.kind == "f"):
        return False
    return _largest(op, inputs, expected) <= LARGEST[dtype]


def _largest(op: str, inputs: Arrays, expected: Arrays) -> float:
    """Return the largest size of the numbers that must be within the range of a dtype; NaN if there is one."""
    values = [v for v in expected.values() if v.dtype.kind == "f"]
    if REGISTRY[op].family == "bias":  # a bias is a slope times a distance, which must be in range as well
        values += [v for n, v in inputs.items() if n in positions_of(op)]
    return float(np.max([np.max(np.abs(v), initial=0.0) for v in values], initial=0.0))


def plain(op: str, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Arrays:
    """Return what the definition gives in NumPy's float64: not the truth, but near it."""
    positional, keywords = bind(op, inputs, params)
    if makes_constants(op):
        keywords["xp"] = numpy_namespace()
    if takes_dtype(op):
        keywords["dtype"] = np.dtype(np.float64)
    with np.errstate(all="ignore"):
        results = REGISTRY[op].function(*positional, **keywords)
    names = REGISTRY[op].outputs
    return {n: np.asarray(x) for n, x in zip(names, results if len(names) > 1 else (results,), strict=True)}


def result_placeholders(
    op: str, inputs: Arrays, params: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Arrays:  # fmt: skip
    """
    Return arrays of the shapes and kinds of a call's results that take no memory: the whole may be too large to compute.

    The definition runs on two indices of every row axis; where that does not give the `shapes` that somebody has, on all.
    """
    inputs = wide(inputs)
    free = rows_of(op, inputs, params, {})
    cut = free.cut(inputs, {key: np.arange(min(size, LEAST)) for key, size in free.sizes.items()})
    try:
        placeholders = plain(op, cut, params)
    except ValueError:  # of the whole call it says more
        placeholders = {}
    near = rows_of(op, cut, params, {n: x.shape for n, x in placeholders.items()})

    def size_of(name: str, axis: int, size: int) -> int:
        key = near.results.get(name, {}).get(axis)
        return free.sizes[key] if key is not None and size == near.sizes[key] else size

    named = {n: tuple(size_of(n, axis, size) for axis, size in enumerate(x.shape)) for n, x in placeholders.items()}
    if not placeholders or near.sizes.keys() != free.sizes.keys() or shapes not in (None, named):
        placeholders = plain(op, inputs, params)
        named = {n: x.shape for n, x in placeholders.items()}
    return {n: placeholder(x, named[n]) for n, x in placeholders.items()}


def placeholder(x: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return an array of a shape, of the kind of `x`, that takes no memory."""
    return np.broadcast_to(np.zeros((), np.int64 if x.dtype.kind in "bi" else np.float64), shape)


def widths_of(errors: Arrays, expected: Arrays) -> Arrays:
    """Return half-widths of results by their error bounds, as float32 rounded up; `expected` itself is rounded once."""
    rounding = {n: np.where(error > 0, 2.0**-53 * np.abs(expected[n]), 0.0) for n, error in errors.items()}
    return {n: rounded_up(np.broadcast_to(error + rounding[n], expected[n].shape)) for n, error in errors.items()}


def wide(arrays: Arrays) -> Arrays:
    """Return arrays with their reals in float64."""
    return {n: x.astype(np.float64) if x.dtype.kind == "f" and x.dtype != np.float64 else x for n, x in arrays.items()}


def decided(system: Bounds, run: Callable[[Bounds], R]) -> R:
    """Return what `run` gives on error bounds; if they leave a decision open, by the definition's own formulas alone."""
    try:
        return run(system)
    except Undecided:
        return run(system.of_first_formulas())


# ---- what no suite stores, computed with NumPy: it needs no python-flint ---------------------------------------------------
def live_bounds(accuracy: str) -> Bounds:
    """Return the bounds of an accuracy class whose values come from NumPy."""
    from posref.backends.live import live  # stored cases need none of it

    return live(accuracy)


def half_widths(op: str, call: Call, accuracy: str) -> Arrays:
    """Return the half-widths of a call's results that are reals, computed once; NaN if the class leaves a decision open."""
    return _computed(op, call, accuracy, lambda: live_bounds(accuracy))


def of_scalars(op: str, call: Call, dtype: str) -> Arrays:
    """Return how far a call's results move when scalars, such as 1/sqrt(D), are rounded to `dtype`, computed once."""
    from posref.backends.live import LiveScalars

    return _computed(op, call, f"scalars-{dtype}", lambda: LiveScalars(ROUNDING[dtype]))


def _computed(op: str, call: Call, kept: str, system: Callable[[], Bounds]) -> Arrays:
    """Return half-widths in a number system that a call keeps by a name."""
    if kept not in call.computed:
        pullback = pullback_of(call)
        try:
            errors = decided(system(), lambda system: errors_of(system, op, call.inputs, call.params, pullback))
            call.computed[kept] = widths_of(errors, call.expected)
        except Undecided:
            reals = {name: value for name, value in call.expected.items() if value.dtype.kind == "f"}
            call.computed[kept] = {name: np.full(value.shape, np.nan) for name, value in reals.items()}
    return call.computed[kept]


def moved_by_trigonometry(op: str, call: Call) -> dict[str, Arrays]:
    """Return what `sensitivity` gives of a call that no suite stores."""
    from posref.backends.live import LiveSensitivity

    return sensitivity(LiveSensitivity(), op, call.inputs, call.params, call.expected, pullback_of(call))
