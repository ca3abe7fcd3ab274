"""Calls of an operation: the names and order of their arrays, and the dtype in which each is given."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from posref import scaling
from posref.core.composition import has_frequencies
from posref.spec import REGISTRY

from .accuracy import DEFAULT_CLAIM, OF_DTYPE, OF_FREQUENCIES, UNIT, declared_in, of_mixed, with_trig, without_trig
from .errors import BuildError

HALF = ("bfloat16", "float16")
ASKED = "{}/asked/"  # how the ids of calls that are made for an operation begin
EXACT = 1 << 24  # the largest number up to which float32 has all integers
TABLES = ("cos", "sin")  # what a case may give in another dtype than the rest


@cache
def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a definition; Python takes long to find them."""
    return inspect.signature(function).parameters


def called_as(op: str) -> str:
    """Return in words how a check calls an operation: arrays in order, options by name, and those that may be left out."""
    parameters = [p for n, p in parameters_of(REGISTRY[op].function).items() if n not in ("xp", "device", "dtype")]
    optional = [p.name for p in parameters if p.default is not p.empty]
    words = [f"{p.name}=..." if p.kind is p.KEYWORD_ONLY else p.name for p in parameters if p.name not in optional]
    call = f"{op}({', '.join(words)})"
    return f"{call}, in some cases also with {', '.join(optional)}" if optional else call


def bind(op: str, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return a call's positional and keyword arguments, in the order of the reference's signature."""
    values = {**inputs, **params}
    parameters = parameters_of(REGISTRY[op].function)
    unknown = set(values) - set(parameters)
    missing = {n for n, p in parameters.items() if p.default is p.empty} - set(values)
    if unknown or missing:
        msg = f"{op} takes {', '.join(parameters)}; the call has too many {sorted(unknown)} or lacks {sorted(missing)}."
        raise BuildError(msg)
    positional = [values[n] for n, p in parameters.items() if p.kind is p.POSITIONAL_ONLY]
    keywords = {n: values[n] for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY and n in values}
    return positional, keywords


PLACED = ("dtype", "xp", "device")  # arguments that say where and in what to compute


def array_names(op: str) -> tuple[str, ...]:
    """Return the arguments of an operation that are arrays: all but its options, and where and in what to compute."""
    record = REGISTRY[op]
    known = {*record.domains, *PLACED}
    return tuple(name for name in parameters_of(record.function) if name not in known)


@cache
def positions_of(op: str) -> tuple[str, ...]:
    """Return the arguments that are positions, or differences of them: no intervals, rows of a table, slots or parents."""
    arrays = REGISTRY[op].arrays
    whole = {name: axes for name, axes in arrays.items() if axes.kind in ("position", "integer")}
    names = [name for name, axes in whole.items() if not (axes.ordered or axes.distinct or axes.earlier)]
    return tuple([name for name in names if not arrays[name].index] or names)  # positions may be rows of a table themselves


def is_wide(op: str, name: str) -> bool:
    """Return whether an argument is never given in half precision: positions, frequencies, and what angles are made of."""
    axes = REGISTRY[op].arrays.get(name)
    return axes is not None and axes.kind in ("position", "integer", "wide")


def given_dtype(op: str, name: str, dtype: str, form: str = "") -> str:
    """Return the dtype in which an argument's reals are given where the call is made in `dtype`; `form` may say another."""
    if name in TABLES and dtype in HALF and form == "float32-tables":
        return "float32"
    if name in TABLES and dtype not in HALF and form == "half-tables":
        return "float16"
    return "float32" if dtype in HALF and is_wide(op, name) else dtype


def differentiable(op: str, inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the inputs in which a call may be differentiated: NumPy reals, but not positions."""
    places = positions_of(op)
    return tuple(name for name, value in inputs.items() if value.dtype.kind == "f" and name not in places)


def makes_constants(op: str) -> bool:
    """Return whether an operation computes constants from host numbers (frequencies, slopes), in any real dtype."""
    return "xp" in parameters_of(REGISTRY[op].function)


def returns_reals(op: str) -> bool:
    """Return whether an operation's results are reals; integers and masks are the same in every dtype, and asked once."""
    return REGISTRY[op].returns == "real"


def ladder(op: str, dtype: str, claim: str) -> tuple[str, ...]:
    """
    Return the accuracy classes that an operation has in a dtype, tightest first.

    A claim with its own trigonometry comes after the class it widens. Two classes are only where there are frequencies, and
    mixed only where sums are long or positions make a table.
    """
    base = without_trig(claim)
    classes = [c for c in OF_DTYPE[dtype] if class_of_claim(op, c) == c]
    return tuple(name for c in classes for name in ((c, claim) if c == base != claim else (c,)))


@cache
def class_of_claim(op: str, claim: str) -> str:
    """Return the class to which an operation is held: angle32 or low in place of a claim of a class that it does not have."""
    base = without_trig(claim)
    if base == "mixed" and op not in of_mixed():
        return claim.replace(base, "low", 1)
    return claim if has_frequencies(op) or base not in OF_FREQUENCIES else claim.replace(base, "angle32", 1)


def class_and_dtype(op: str, accuracy: str, dtype: str, *, gradients: bool) -> tuple[str, str]:
    """
    Return the class and the dtype by which results are judged.

    Constants come in any real dtype of at least float32. Gradients in half precision are judged by class "low", whatever is
    claimed: libraries add up the gradient of an input in its own dtype, rounding each part.
    """
    if makes_constants(op) and dtype in UNIT:
        return DEFAULT_CLAIM["float32"] if accuracy.startswith(("low", "mixed")) else accuracy, "float32"
    if gradients and dtype in UNIT:
        return with_trig("low", declared_in(accuracy)), dtype
    return class_of_claim(op, accuracy), dtype


def takes_dtype(op: str) -> bool:
    """Return whether an operation has an argument for the dtype of its result."""
    return "dtype" in parameters_of(REGISTRY[op].function) and not makes_constants(op)


# ---- options as JSON ------------------------------------------------------------------------------------------------------
def to_json(value: Any) -> Any:
    """Return an option as JSON: numbers and words as they are, a scaling as ``{"type": ...}`` with all its fields."""
    if isinstance(value, scaling.Scaling):
        values = {f.name: getattr(value, f.name) for f in fields(value)}
        values = {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}
        return {"type": type(value).__name__, **values}
    return value


def from_json(value: Any) -> Any:
    """Return an option from JSON; ValueError for an unknown scaling, and for a field that is not its own."""
    if not isinstance(value, dict):
        return value
    rest = dict(value)
    name = rest.pop("type", None)
    kinds = {kind.__name__: kind for kind in scaling.RECORDS}
    hints = _fields_of(name) if name in kinds else {}
    if name not in kinds or set(rest) != set(hints) or not all(_fits(rest[n], hint) for n, hint in hints.items()):
        msg = f"from_json: a scaling must have a type of {sorted(kinds)} and all of that record's fields; got {value!r}."
        raise ValueError(msg)
    return kinds[name](**{n: tuple(v) if isinstance(v, list) else v for n, v in rest.items()})


@cache
def _fields_of(name: str) -> dict[str, Any]:
    """Return the types of a scaling's fields, which take long to find."""
    return get_type_hints(getattr(scaling, name))


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value from JSON is of a field's type; an integer is a float as well, and a boolean is neither."""
    if get_origin(hint) is tuple:
        return isinstance(value, list) and all(_fits(item, get_args(hint)[0]) for item in value)
    kinds = get_args(hint) or (hint,)
    return type(value) in kinds or (type(value) is int and float in kinds)


def broadcast_axes(value: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return the axes, except the last, with equal values along them: a view of one row may stand for all."""
    axes = range(value.ndim - 1)
    return tuple(a for a in axes if value.shape[a] > 1 and np.all(value == np.take(value, [0], axis=a)))
