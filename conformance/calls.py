"""How a call of an operation is made up: which arguments are arrays, in which order, and in which dtype they are given."""

import inspect
from collections.abc import Mapping
from typing import Any

from posref.spec import REGISTRY

from .errors import BuildError

HALF = ("bfloat16", "float16")


def bind(op: str, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return a call's positional and keyword arguments, in the order of the reference's signature."""
    values = {**inputs, **params}
    parameters = inspect.signature(REGISTRY[op].function).parameters
    unknown = set(values) - set(parameters)
    missing = {n for n, p in parameters.items() if p.default is p.empty} - set(values)
    if unknown or missing:
        msg = f"{op} takes {', '.join(parameters)}; the call has too many {sorted(unknown)} or lacks {sorted(missing)}."
        raise BuildError(msg)
    positional = [values[n] for n, p in parameters.items() if p.kind is p.POSITIONAL_ONLY]
    keywords = {n: values[n] for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY and n in values}
    return positional, keywords


def array_names(op: str) -> tuple[str, ...]:
    """Return the arguments of an operation that are arrays: all but its options, and where and in what to compute."""
    record = REGISTRY[op]
    known = {*record.domains, "dtype", "xp", "device"}
    return tuple(name for name in inspect.signature(record.function).parameters if name not in known)


def positions_of(op: str) -> tuple[str, ...]:
    """Return the arguments of an operation that are positions, or differences of them."""
    return tuple(name for name, axes in REGISTRY[op].arrays.items() if axes.kind in ("position", "integer"))


def is_wide(op: str, name: str) -> bool:
    """Return whether an argument is never given in half precision: positions, frequencies, and what angles are made of."""
    axes = REGISTRY[op].arrays.get(name)
    return axes is not None and axes.kind in ("position", "integer", "wide")


def given_dtype(op: str, name: str, dtype: str) -> str:
    """Return the dtype in which an argument's reals are given where the call is made in `dtype`."""
    return "float32" if dtype in HALF and is_wide(op, name) else dtype


def differentiable(op: str, inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the inputs in which a call may be differentiated: NumPy reals, but not positions."""
    places = positions_of(op)
    return tuple(name for name, value in inputs.items() if value.dtype.kind == "f" and name not in places)


def makes_constants(op: str) -> bool:
    """Return whether an operation computes constants from host numbers (frequencies, slopes), in any real dtype."""
    return "xp" in inspect.signature(REGISTRY[op].function).parameters


def returns_reals(op: str) -> bool:
    """Return whether an operation's results are reals; integers and masks are the same in every dtype, and asked once."""
    return REGISTRY[op].returns == "real"


def takes_dtype(op: str) -> bool:
    """Return whether an operation is told the dtype of its result."""
    return "dtype" in inspect.signature(REGISTRY[op].function).parameters and not makes_constants(op)
