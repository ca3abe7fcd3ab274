"""Whether an implementation in this process has changed what a check compares with, or what compares."""

from __future__ import annotations

import builtins
import hashlib
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..model import LoadedCase

NUMPY = ("abs", "all", "any", "argmax", "broadcast_to", "isfinite", "isnan", "max", "maximum", "unravel_index", "where")
BUILTINS = ("abs", "all", "any", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list", "map", "max", "min",
            "range", "set", "sorted", "str", "sum", "tuple", "zip")  # fmt: skip
NOT_OURS = "posref.conformance.adapters"


class Guard:
    """What judges, as it was before an implementation was loaded, and what is expected, as it was read."""

    def __init__(self) -> None:
        self._functions = dict(_functions())
        self._cases: list[LoadedCase] = []
        self._print = b""

    def hold(self, cases: Iterable[LoadedCase]) -> None:
        """Remember the values of cases."""
        self._cases = list(cases)
        self._print = _print(self._cases)

    def changed(self) -> str:
        """Return what was changed, in words; empty if nothing was."""
        now = dict(_functions())
        for name, (thing, code) in self._functions.items():
            if name not in now or now[name][0] is not thing or now[name][1] is not code:
                return name
        return "" if _print(self._cases) == self._print else "expected values"


def _functions() -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the functions, classes and methods of posref, and what of NumPy judges, by name; each with its code."""
    ours = [(n, m) for n, m in list(sys.modules.items()) if n.startswith("posref.") and not n.startswith(NOT_OURS)]
    for module, found in ours:
        for name, thing in list(vars(found).items()) if isinstance(found, ModuleType) else ():
            if isinstance(thing, FunctionType):
                yield f"{module}.{name}", (thing, thing.__code__)
            elif isinstance(thing, type) and thing.__module__ == module:
                yield f"{module}.{name}", (thing, None)
                for method, function in list(vars(thing).items()):
                    if isinstance(function, FunctionType):
                        yield f"{module}.{name}.{method}", (function, function.__code__)
    for library, names in ((np, NUMPY), (builtins, BUILTINS)):
        for name in names:
            yield f"{library.__name__}.{name}", (getattr(library, name), None)


def _print(cases: Iterable[LoadedCase]) -> bytes:
    """Return a fingerprint of everything that cases compare with."""
    found = hashlib.blake2b()
    for case in cases:
        for call in case.calls:
            groups = {"": call.expected, "inputs": call.inputs, "cotangents": call.cotangents, **call.widths}
            for accuracy, arrays in groups.items():
                for name, array in arrays.items():
                    found.update(f"{case.id} {accuracy} {name} {array.dtype.str} {array.shape}".encode())
                    found.update(np.ascontiguousarray(array).data if array.size else b"")
    return found.digest()
