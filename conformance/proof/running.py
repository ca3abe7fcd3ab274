"""A definition run in a number system: its outputs, or its gradients, from a call's inputs and options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from posref.backends.adjoints import Adjoints
from posref.backends.bounds import Bounds
from posref.backends.numbers import Array
from posref.backends.rounding import LARGEST, representable
from posref.core.composition import Function, makes_frequencies
from posref.spec import REGISTRY, Encoding

from ..accuracy import OF_DTYPE
from ..calls import bind, given_dtype, is_wide, makes_constants, positions_of, takes_dtype
from ..errors import BuildError, no_operation
from ..model import Arrays


@dataclass(frozen=True)
class Pullback:
    """What is asked of a gradient: the cotangents of the outputs, and the inputs in which to differentiate."""

    cotangents: Arrays
    wrt: tuple[str, ...]


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


def results_of(
    system: Any, op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], pullback: Pullback | None
) -> dict[str, Any]:
    """Return a definition's outputs by name, or its gradients by the name of the input, computed in a number system."""
    if pullback is None:
        return call_of(system, op, inputs, params)
    adjoints = Adjoints(system)
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


def askable(op: str, inputs: Arrays, expected: Arrays, flags: tuple[str, ...] = ()) -> list[str]:
    """Return the dtypes that hold every real input exactly and every output within their range."""
    kept = []
    for dtype in OF_DTYPE:
        holds = all(representable(v, given_dtype(op, n, dtype, flags)) for n, v in inputs.items() if v.dtype.kind == "f")
        values = [v for v in expected.values() if v.dtype.kind == "f"]
        if REGISTRY[op].family == "bias":  # a bias is a slope times a distance, which must be in range as well
            values += [v for n, v in inputs.items() if n in positions_of(op)]
        if holds and all(np.all(np.abs(v) <= LARGEST[dtype]) for v in values):
            kept.append(dtype)
    return kept
