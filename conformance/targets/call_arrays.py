"""The arrays of one call: made, given to an implementation, and looked at afterwards, with the memory around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from posref.spec import REGISTRY

from ..errors import Failure, TargetError
from ..model import Arrays, Call, LoadedCase
from . import invocation
from .invocation import Collected, InProcess, same_bits


class Watched:
    """
    One call of an implementation, with arrays of its own.

    An implementation may state that it overwrites an argument (`in_place`), if the result has its shape: then what is left
    there is the result.
    """

    def __init__(self, target: InProcess, op: str, call: Call, dtype: str, flags: tuple[str, ...]) -> None:
        self.target, self.op = target, op
        self.positional, self.keywords = invocation.arguments(target, op, call, dtype, flags)
        self.overwritten = next((n for n in target.in_place if REGISTRY[op].result == (f"={n}",) and n in call.inputs), None)
        if self.overwritten is not None and "broadcast-view" in flags:  # whose rows share memory: nothing can be written there
            plain = tuple(flag for flag in flags if flag != "broadcast-view")
            array = invocation.to_array(target, op, self.overwritten, call.inputs[self.overwritten], dtype, plain)
            (self.positional if self.overwritten in self.positional else self.keywords)[self.overwritten] = array
        self.arrays = {n: a for n, a in {**self.positional, **self.keywords}.items() if n in call.inputs}
        self.before = {n: target.backend.to_numpy(a) for n, a in self.arrays.items() if n != self.overwritten}
        self.around = self._around()

    def collected(self) -> Collected:
        """Return the results by name, on the host; `Failure` if memory that is none of its own was written to."""
        function = self.target.function(self.op)
        assert function is not None
        with np.errstate(all="ignore"):
            found = function(*self.positional.values(), **self.keywords)
        found = found if self.overwritten is None else self.arrays[self.overwritten]
        kept = invocation.collected(self.target, self.op, found)
        for name, memory in self._around().items():
            if memory != self.around[name]:
                raise Failure(AROUND.format(name))
        return kept

    def changed(self) -> list[str]:
        """Return the names of inputs that are no longer as they were given."""
        host = self.target.backend.to_numpy
        return [n for n, value in self.before.items() if not same_bits(value, host(self.arrays[n]))]

    def _around(self) -> dict[str, bytes]:
        if not hasattr(self.target.backend, "around"):
            return {}
        return {name: self.target.backend.around(array) for name, array in self.arrays.items()}


def run(target: InProcess, case: LoadedCase, call: Call, dtype: str) -> Arrays:
    """
    Return an implementation's outputs by name, as NumPy, after calling it twice.

    Raises
    ------
    Failure
        If shape or dtype are not as they must be, an input or the memory around it changed, or the second call gave other bits.
    """
    op = case.op
    asked = Watched(target, op, call, dtype, case.flags)

    def once() -> Arrays:
        found = asked.collected()
        told = "dtype" in asked.keywords
        return {n: invocation.accept(op, n, x, of, call, dtype, asked=told, flags=case.flags) for n, (x, of) in found.items()}

    first = once()
    changed = asked.changed()
    if changed:
        raise Failure(invocation.CHANGED.format(changed[0]))
    if asked.overwritten is not None:
        asked = Watched(target, op, call, dtype, case.flags)
    invocation.expect_same(first, once())
    return first


AROUND = "wrote to the memory around its input {}"


def settle_in_place(name: str, stated: Any) -> tuple[str, ...]:
    """Return the arguments that an implementation says it overwrites, or raise `TargetError` for one that it cannot."""
    possible = sorted({shape[1:] for record in REGISTRY.values() for shape in record.result if shape.startswith("=")})
    given = (stated,) if isinstance(stated, str) else tuple(stated)
    if not all(argument in possible for argument in given):
        msg = f"{name}: in_place must name arguments that a result has the shape of: {', '.join(possible)}; got {stated!r}."
        raise TargetError(msg)
    return given
