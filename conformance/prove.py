"""
Two witnesses: what a call must give, proved by the definition on balls and by a transcription that shares no code with it.

`golden` and `half_widths` work for every registered definition, so that a new one gets expected values and tolerances with no
new code; `disagreement` needs a transcription in `posref.conformance.definitions`.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from posref.backends import exact
from posref.backends.bounds import Bounds, bounds, rounded_up
from posref.backends.numbers import Array, Undecided
from posref.scaling import Scaling
from posref.spec import REGISTRY, Encoding

from .calls import AT_LEAST_FLOAT32, bind, makes_constants, takes_dtype
from .errors import BuildError
from .stages import stages

Arrays = dict[str, npt.NDArray[Any]]
WITNESS_BITS = (256, 4096)


def encoding_of(op: str | Callable[..., Any]) -> Encoding:
    """Return the registry's record of an operation, given by name or function."""
    name = op if isinstance(op, str) else op.__name__
    if name not in REGISTRY:
        msg = f"op must be one of {', '.join(REGISTRY)}; got {name!r}."
        raise BuildError(msg)
    return REGISTRY[name]


def golden(op: str | Callable[..., Any], inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Arrays:
    """Return what is true: the definition on balls, every value proved to be the nearest float64 (integers exact)."""
    record = encoding_of(op)

    def call() -> tuple[Any, ...]:
        return tuple(_call(exact.exact, record.name, inputs, params).values())

    return dict(zip(record.outputs, exact.evaluate(call), strict=True))


def golden_stages(op: str, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Arrays:
    """Return the proved values of the stages that a composed operation goes through."""
    names: list[str] = []

    def call() -> tuple[Any, ...]:
        found = stages(op, lambda *step: _call(exact.exact, *step), inputs, params)
        names[:] = found
        return tuple(found.values())

    values = exact.evaluate(call)
    return dict(zip(names, values, strict=True))


def half_widths(
    op: str | Callable[..., Any], inputs: Mapping[str, Any], params: Mapping[str, Any], accuracy: str, expected: Arrays
) -> Arrays:
    """
    Return how far an honest implementation of an accuracy class may be from `expected`, as float32 rounded up.

    Raises
    ------
    BuildError
        If a discrete decision lies within the class's error of its threshold: such a case has no single answer.
    """
    record = encoding_of(op)
    system = bounds(accuracy)
    try:
        outputs = _call(system, record.name, inputs, params)
    except Undecided as error:
        msg = f"{record.name}: a decision lies within the error of class {accuracy}: {error}."
        raise BuildError(msg) from error
    widths = {}
    for name, output in outputs.items():
        if isinstance(output, Array) and output.dtype.kind != "real floating":
            continue
        bound = _as_reals(output, system).parts[1]
        own = np.where(bound > 0, 2.0**-53 * np.abs(expected[name]), 0.0)  # expected itself is rounded once
        widths[name] = rounded_up(np.broadcast_to(bound + own, expected[name].shape))
    return widths


def disagreement(op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], found: Arrays, mid: Arrays) -> str | None:
    """Return where the transcription differs from the definition's values `found` and stages `mid`, or None if nowhere."""
    if all(value.size == 0 for value in found.values()):
        return None  # nested lists without elements do not even say their shape
    problem = None
    for bits in WITNESS_BITS:
        problem = _compare(op, inputs, params, {"out": found, "mid": mid}, bits)
        if problem is None:
            return None
    return problem


def _compare(op: str, inputs: Mapping[str, Any], params: Mapping[str, Any], found: dict[str, Arrays], bits: int) -> str | None:
    """Return the first difference at one precision."""
    with mpmath.workprec(bits):
        lists = {name: _to_lists(value) for name, value in inputs.items()}
        options = {name: _option(value) for name, value in params.items()}
        told = {"out": _transcribed(op, lists, options), "mid": {}}
        if found["mid"]:
            told["mid"] = stages(op, _transcribed, lists, options)
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


def _call(system: Any, op: str, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition's outputs by name, computed in a number system."""
    record = REGISTRY[op]
    arrays = {name: _to_system(system, name, value) for name, value in inputs.items()}
    positional, keywords = bind(op, arrays, params)
    if makes_constants(op):
        keywords["xp"] = system
    elif takes_dtype(op):
        keywords["dtype"] = system.storage
    outputs = record.function(*positional, **keywords)
    return dict(zip(record.outputs, outputs if len(record.outputs) > 1 else (outputs,), strict=True))


def _to_system(system: Any, name: str, value: Any) -> Any:
    """Return an input in a number system: positions and frequencies wide, other reals in storage."""
    if isinstance(value, Array):
        return value
    host = np.asarray(value)
    if host.dtype.kind in "iub":
        return system.asarray(host)
    return system.asarray(host, dtype=system.float64 if name in AT_LEAST_FLOAT32 else system.storage)


def _as_reals(value: Any, system: Bounds) -> Array:
    return value if isinstance(value, Array) else system.asarray(float(value), dtype=system.float64)


def _transcribed(op: str, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a transcription's outputs by name."""
    function = getattr(import_module(f"posref.conformance.definitions.{op}"), op)
    positional, keywords = bind(op, inputs, params)
    outputs = function(*positional, **keywords)
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

    def flat(nested: Any) -> list[Any]:
        return [leaf for row in nested for leaf in flat(row)] if isinstance(nested, list) else [nested]

    def shape(nested: Any) -> tuple[int, ...]:
        if not isinstance(nested, list):
            return ()
        return (len(nested), *(shape(nested[0]) if nested else ()))

    leaves = flat(value)
    if like.size == 0 and not leaves:
        return np.zeros(like.shape, like.dtype)  # empty lists do not say their inner axes
    convert = float if like.dtype.kind == "f" else int
    return np.asarray([convert(leaf) for leaf in leaves], dtype=like.dtype).reshape(shape(value))
