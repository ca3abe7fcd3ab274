"""
Gradients of an implementation: by its own `vjp`, or by its library's automatic differentiation.

An implementation that has a function ``vjp(op, inputs, params, cotangents, wrt)`` is asked that, and held to it: arrays by the
name of the argument, options as the case has them, cotangents by the name of the output; it returns the gradients of the
inputs `wrt` by name. Otherwise its library differentiates the operation; what then raises or stops the gradient is unsupported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from posref.spec import REGISTRY

from ..calls import given_dtype
from ..errors import Failure, Unsupported
from ..model import Arrays, Call, LoadedCase
from . import invocation
from .invocation import InProcess

Found = dict[str, tuple[np.ndarray[Any, Any], str | None]]


def run(target: InProcess, case: LoadedCase, call: Call, dtype: str) -> Arrays:
    """
    Return an implementation's gradients by the name of the input, as NumPy, after asking twice.

    Raises
    ------
    Unsupported
        If neither it nor its library has them.
    Failure
        If one is missing, shape or dtype are not those of the input, an array changed, or the second call gave other bits.
    """
    attempt = GradientCall(target, case, call, dtype)
    first = attempt.accepted()
    changed = attempt.changed()
    if changed:
        raise Failure(invocation.CHANGED.format(changed[0]))
    invocation.expect_same(first, attempt.accepted())
    return first


class GradientCall:
    """A call for gradients, with its arrays made: what it gives, and which of the arrays it changed."""

    overwritten = None  # no input is overwritten with a gradient

    def __init__(self, target: InProcess, case: LoadedCase, call: Call, dtype: str) -> None:
        op, flags = case.op, case.flags
        self.target, self.op, self.call, self.dtype = target, op, call, dtype
        self.positional, self.keywords = invocation.arguments(target, op, call, dtype, flags)
        arguments = {**self.positional, **self.keywords}
        self.inputs = {name: arguments[name] for name in call.inputs if name in arguments}
        self.cotangents = {n: invocation.to_array(target, op, n, value, dtype, flags) for n, value in call.cotangents.items()}
        self.before = {name: target.backend.to_numpy(array) for name, array in self._arrays().items()}

    def _arrays(self) -> dict[str, Any]:
        return {**self.inputs, **{f"the cotangent of {name}": array for name, array in self.cotangents.items()}}

    def changed(self) -> list[str]:
        """Return the names of arrays that are no longer as they were given."""
        host = self.target.backend.to_numpy
        return [n for n, array in self._arrays().items() if not invocation.same_bits(self.before[n], host(array))]

    def accepted(self) -> Arrays:
        """Return the gradients by name, or raise `Failure` for what is wrong with them whatever their values."""
        return {name: accept(self.op, name, *found, self.call, self.dtype) for name, found in self.collected().items()}

    def collected(self) -> Found:
        """Return the gradients by name, on the host, each with the name of its dtype."""
        own = getattr(self.target.implementation, "vjp", None)
        wrt = tuple(self.call.expected)
        with np.errstate(all="ignore"):
            if callable(own):
                given = own(self.op, dict(self.inputs), dict(self.call.params), dict(self.cotangents), wrt)
                found = _all_of(given, wrt)
            else:
                found = self._differentiated(wrt)
        return {name: invocation.to_host(self.target, name, found[name]) for name in wrt}

    def _differentiated(self, wrt: tuple[str, ...]) -> dict[str, Any]:
        """Return the gradients that the library's automatic differentiation gives."""
        library, function = self.target.backend, self.target.function(self.op)
        assert function is not None

        def outputs(*arrays: Any) -> tuple[Any, ...]:
            moved = dict(zip(wrt, arrays, strict=True))
            positional = [moved.get(name, value) for name, value in self.positional.items()]
            result = function(*positional, **{name: moved.get(name, value) for name, value in self.keywords.items()})
            return tuple(result) if len(REGISTRY[self.op].outputs) > 1 else (result,)

        try:
            cotangents = [self.cotangents[name] for name in REGISTRY[self.op].outputs]
            found = library.vjp(outputs, [self.inputs[name] for name in wrt], cotangents)
        except Exception as error:  # nothing was promised, and nobody is misled
            msg = f"no gradient by {library.name}: {invocation.in_one_line(error)}"
            raise Unsupported(msg) from error
        gradients = dict(zip(wrt, found, strict=True))
        stopped = [name for name, gradient in gradients.items() if gradient is None]
        if stopped:
            msg = f"no gradient by {library.name}: it finds no dependence of the result on {', '.join(stopped)}"
            raise Unsupported(msg)
        return gradients


def none_by(library: str) -> str:
    """Return why an implementation has no gradients whose library does not differentiate."""
    return f"{library} has no automatic gradients: define vjp()"


def accept(op: str, name: str, host: np.ndarray[Any, Any], found: str | None, call: Call, dtype: str) -> np.ndarray[Any, Any]:
    """Return a gradient, or raise `Failure` unless it has the shape and dtype of its input."""
    shape = call.inputs[name].shape
    if host.shape != shape:
        msg = f"the gradient of {name} must have its shape, {shape}; got {host.shape}"
        raise Failure(msg)
    of_input = given_dtype(op, name, dtype)
    if found != of_input:
        msg = f"the gradient of {name} must be {of_input}, as {name} is; got {found or 'a Python number'}"
        raise Failure(msg)
    return host


def _all_of(given: Any, wrt: tuple[str, ...]) -> Mapping[str, Any]:
    """Return what an implementation's `vjp` gave, or raise `Failure` unless it is a dict with every gradient."""
    if not isinstance(given, Mapping):
        msg = f"vjp must return a dict of gradients by the name of the input; got {type(given).__name__}"
        raise Failure(msg)
    missing = [name for name in wrt if given.get(name) is None]
    if missing:
        msg = f"vjp returned no gradient of {', '.join(missing)}"
        raise Failure(msg)
    return given
