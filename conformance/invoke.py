"""One call of an implementation: its arguments made, its options fitted, its results brought home and compared."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from . import classes
from .calls import AT_LEAST_FLOAT32, makes_constants, takes_dtype
from .errors import Unsupported
from .suite import Call
from .target import Target

Arrays = dict[str, npt.NDArray[Any]]


class Failure(Exception):
    """A result that is wrong in shape, dtype, finiteness or conduct."""


@dataclass(frozen=True)
class Worst:
    """The value farthest outside its tolerance."""

    output: str
    index: tuple[int, ...]
    expected: float
    got: float
    error: float
    tolerance: float

    @property
    def ratio(self) -> float:
        """Error over tolerance; infinite where the value must be exact."""
        return self.error / self.tolerance if self.tolerance else (np.inf if self.error else 0.0)


def arguments(target: Target, op: str, call: Call, dtype: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """
    Return the positional and keyword arguments of a call by name, in the implementation's own arrays.

    Raises
    ------
    Unsupported
        If the implementation's signature lacks an option that does not have its default value.
    """
    reference = inspect.signature(REGISTRY[op].function).parameters
    arrays = {name: to_array(target, name, value, dtype) for name, value in call.inputs.items()}
    values = {**call.params, **arrays}
    positional = {n: values[n] for n, p in reference.items() if p.kind is p.POSITIONAL_ONLY}
    keywords = {n: values[n] for n, p in reference.items() if p.kind is p.KEYWORD_ONLY and n in values}
    accepts = _accepted(target.function(op))
    for name in [n for n in keywords if accepts is not None and n not in accepts]:
        value = keywords.pop(name)
        if name in call.inputs or value != reference[name].default:
            msg = f"no option {name!r}"
            raise Unsupported(msg)
    if takes_dtype(op):
        if accepts is None or "dtype" in accepts:
            keywords["dtype"] = target.backend.dtype(dtype)
        elif dtype in classes.UNIT:
            msg = "no option 'dtype'"
            raise Unsupported(msg)
    return positional, keywords


def to_array(target: Target, name: str, value: npt.NDArray[Any], dtype: str) -> Any:
    """Return an input in the implementation's arrays; positions and frequencies are never narrower than float32."""
    if value.dtype.kind != "f":
        return target.backend.from_numpy(value, None, target.device)
    narrow = "float32" if name in AT_LEAST_FLOAT32 and dtype in classes.UNIT else dtype
    return target.backend.from_numpy(value, narrow, target.device)


def run(target: Target, op: str, call: Call, dtype: str) -> Arrays:
    """
    Return an implementation's outputs by name, as NumPy, after calling it twice.

    Raises
    ------
    Failure
        If shape or dtype are not as they must be, an input changed, or the second call gave other bits.
    """
    function = target.function(op)
    assert function is not None
    positional, keywords = arguments(target, op, call, dtype)
    given = {n: a for n, a in {**positional, **keywords}.items() if n in call.inputs}
    before = {n: target.backend.to_numpy(a) for n, a in given.items()}
    first = _outputs(target, op, function(*positional.values(), **keywords), call, dtype, keywords)
    for name, array in given.items():
        if not _same(before[name], target.backend.to_numpy(array)):
            msg = f"changed its input {name}"
            raise Failure(msg)
    second = _outputs(target, op, function(*positional.values(), **keywords), call, dtype, keywords)
    for name, value in first.items():
        if not _same(value, second[name]):
            msg = f"the same call gave other bits the second time ({name})"
            raise Failure(msg)
    return first


def compare(op: str, call: Call, outputs: Arrays, accuracy: str, dtype: str) -> Worst | None:
    """Return the value farthest outside the class's tolerance, or None if all are within."""
    worst: Worst | None = None
    for name, expected in call.expected.items():
        error, width = errors(op, call, name, outputs[name], accuracy, dtype)
        outside = ~(error <= width)
        if not np.any(outside):
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(outside, np.where(np.isnan(error), np.inf, error / width), -1.0)
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratio)), ratio.shape)) if ratio.ndim else ()
        got = np.broadcast_to(outputs[name], expected.shape)
        found = Worst(name, at, float(expected[at]), float(got[at]), float(error[at]), float(width[at]))
        if worst is None or found.ratio > worst.ratio:
            worst = found
    return worst


def errors(
    op: str, call: Call, name: str, output: npt.NDArray[Any], accuracy: str, dtype: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the absolute errors of an output and their tolerances."""
    expected = call.expected[name]
    with np.errstate(invalid="ignore"):
        error = np.abs(np.broadcast_to(output, expected.shape).astype(np.float64) - expected)
    if expected.dtype.kind != "f":
        return error, np.zeros(expected.shape)
    stored = {c: widths[name] for c, widths in call.widths.items() if name in widths}
    return error, classes.tolerance(stored, expected, accuracy, "float32" if makes_constants(op) else dtype)


def _outputs(target: Target, op: str, result: Any, call: Call, dtype: str, keywords: dict[str, Any]) -> Arrays:
    """Return a call's results by name, or raise `Failure` for what is wrong with them whatever their values."""
    names = REGISTRY[op].outputs
    results = result if isinstance(result, tuple | list) and len(names) > 1 else (result,)
    if len(results) != len(names):
        msg = f"returned {len(results)} results where {len(names)} are wanted: {', '.join(names)}"
        raise Failure(msg)
    return {n: _output(target, op, n, r, call, dtype, keywords) for n, r in zip(names, results, strict=True)}


def _output(
    target: Target, op: str, name: str, result: Any, call: Call, dtype: str, keywords: dict[str, Any]
) -> npt.NDArray[Any]:
    expected = call.expected[name]
    native = not isinstance(result, np.ndarray | np.generic | int | float) or (
        target.backend.name == "numpy" and isinstance(result, np.ndarray)
    )
    try:
        host = target.backend.to_numpy(result) if native else np.asarray(result)
    except Exception as error:
        msg = f"{name} must be an array of {target.backend.name}; got {type(result).__name__}"
        raise Failure(msg) from error
    shape_fits = host.shape == expected.shape
    if REGISTRY[op].family == "bias" and expected.ndim > 2:
        shape_fits = host.ndim == expected.ndim and all(n in (1, m) for n, m in zip(host.shape, expected.shape, strict=True))
    if not shape_fits:
        msg = f"{name} must have shape {expected.shape}; got {host.shape}"
        raise Failure(msg)
    _check_dtype(target, op, name, result, host, expected, dtype, keywords)
    return host


def _check_dtype(
    target: Target,
    op: str,
    name: str,
    result: Any,
    host: npt.NDArray[Any],
    expected: npt.NDArray[Any],
    dtype: str,
    keywords: Any,
) -> None:
    """Raise `Failure` unless a result has a dtype that the operation may return."""
    if expected.dtype.kind != "f":
        if host.dtype.kind not in "iu":
            msg = f"{name} must be of an integer dtype; got {getattr(result, 'dtype', host.dtype)}"
            raise Failure(msg)
        return
    if not hasattr(result, "dtype"):  # a factor is a Python float
        return
    half = {target.backend.dtype(d) for d in classes.UNIT if d in target.backend.dtypes}
    free = makes_constants(op) or expected.ndim == 0 or (takes_dtype(op) and "dtype" not in keywords)
    if host.dtype.kind != "f" or (free and result.dtype in half):
        msg = f"{name} must be real and at least float32; got {result.dtype}"
        raise Failure(msg)
    if not free and result.dtype != target.backend.dtype(dtype):
        msg = f"{name} must be {dtype}; got {result.dtype}"
        raise Failure(msg)


def _same(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether two arrays have the same bits."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _accepted(function: Any) -> frozenset[str] | None:
    """Return the keywords that a function takes, or None for any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))
