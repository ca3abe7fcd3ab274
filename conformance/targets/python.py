"""A Python implementation in this process."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from inspect import isroutine
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from posref import backends
from posref.scaling import RECORDS
from posref.spec import REGISTRY

from ..accuracy import OF_DTYPE, TRIG
from ..calls import takes_dtype
from ..errors import Failure, PosrefError, Stopped, TargetError, Unsupported
from ..model import Arrays, Call, LoadedCase
from ..suite.quotation import shown
from . import call_arrays, compiler_notes, gradients, invocation
from .base import SCALINGS, Target, check_dtypes, settle_claims, settle_scalings, settle_supports
from .names import find

T = TypeVar("T")


@dataclass
class PythonTarget(Target):
    """A module or object in this process."""

    implementation: Any = None
    backend: Any = None
    device: Any = None
    in_place: tuple[str, ...] = ()  # the arguments that it overwrites with its result
    given_up: int = field(default_factory=compiler_notes.given_up)  # by torch.compile, before it is asked
    kind = "python"

    def remarks(self) -> tuple[str, ...]:
        """Return the implementation's notes, and whether torch.compile gave up."""
        return (*self.notes, *compiler_notes.remarks(self.given_up))

    def function(self, op: str) -> Callable[..., Any] | None:
        """Return the implementation's function for an operation, or None."""
        found = offered(self.implementation, op)
        return found if callable(found) else None

    def stated(self) -> dict[str, Any]:
        """Return what it states of itself, as the protocol has it in the reply to start."""
        claims: dict[str, Any] = {d: TRIG.sub("", c) for d, c in self.claims.items()}
        declared = {float(found[1]) for c in self.claims.values() if (found := TRIG.search(c))}
        operations = [op for op in REGISTRY if self.has(op)]
        with_gradients = list(filter(self.has_gradients, operations))
        own_dtype = [op for op in operations if takes_dtype(op) and not invocation.takes_keyword(self.function(op), "dtype")]
        return {
            "implementation": {"name": self.name, "language": f"Python, {self.library}"},
            "operations": operations, "dtypes": list(self.dtypes),
            "vjp": with_gradients, **({} if with_gradients else {"no_vjp": gradients.none_by(self.library)}),
            "claims": claims | ({"trig": max(declared)} if declared else {}),
            "scalings": list(self.scalings), **({} if self.supports is None else {"supports": self.supports}),
            "own_dtype": own_dtype, "notes": list(self.notes), "versions": dict(self.versions),
        }  # fmt: skip

    def has(self, op: str) -> bool:
        """Return whether there is a function of that name."""
        return self.function(op) is not None

    def has_gradients(self, op: str) -> bool:
        """Return whether it has a `vjp`, or its library differentiates."""
        return hasattr(self.backend, "vjp") or callable(offered(self.implementation, "vjp"))

    def begin(self, case: LoadedCase) -> None:
        """Call `reset` where an implementation that keeps state on purpose offers it; a sequence is one case."""
        reset = offered(self.implementation, "reset")
        if callable(reset):
            _stopping(reset)

    def run(self, case: LoadedCase, call: Call, dtype: str) -> Arrays:
        """Call it twice in this process."""
        if call.cotangents:
            if not self.has_gradients(case.op):
                raise Unsupported(gradients.none_by(self.backend.name))
            return _stopping(gradients.run, self, case.op, call, dtype, case.flags)
        return _stopping(call_arrays.run, self, case, call, dtype)

    def refuse(self, case: LoadedCase, dtype: str) -> str:
        """Return the exception that it raises."""
        return _stopping(invocation.refuse, self, case, dtype)


def _stopping(function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function gives that calls an implementation; whatever that raises is its verdict, not ours."""
    try:
        return function(*arguments)
    except (Unsupported, Failure, KeyboardInterrupt):
        raise
    except NotImplementedError as error:
        raise Unsupported(shown(invocation.text_of(error)) or "not implemented") from error
    except BaseException as error:
        raise Stopped(verdict="error", message=invocation.in_one_line(error)) from error


def offered(implementation: Any, name: str, default: Any = None) -> Any:
    """Return an attribute of an implementation, or `default` if it has none; `TargetError` if it raises anything else."""
    try:
        return getattr(implementation, name, default)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        msg = f"{type(implementation).__name__}: reading {name!r} of it raised {invocation.in_one_line(error)}"
        raise TargetError(msg) from error


def load_python(
    target: Any, *, backend: str | None = None, dtype: str | None = None, claim: str | None = None, trig: float | None = None,
    device: Any = None,
) -> PythonTarget:  # fmt: skip
    """Return a target in this process; TargetError as `load`, also where what it states raises when it is read."""
    try:
        return _loaded(target, backend, dtype, claim, trig, device)
    except (PosrefError, backends.BackendMissing, KeyboardInterrupt):
        raise
    except BaseException as error:
        if isinstance(error, ValueError) and str(error).startswith("backends.load: name "):
            raise TargetError(str(error).replace("backends.load: name", "check: backend", 1)) from error
        msg = (
            f"{target if isinstance(target, str) else type(target).__name__}: loading it raised {invocation.in_one_line(error)}"
        )
        raise TargetError(msg) from error


def _without_operations(name: str, implementation: Any) -> str:
    """Return the sentence that refuses a target of whose functions none is named as an operation."""
    if isroutine(implementation):
        return f"{name}: is itself a function; must have functions named as operations. Name the module or file that has it."
    near = {word: get_close_matches(word, REGISTRY, n=1, cutoff=0.75) for word in dir(implementation) if word[0] != "_"}
    close = ", ".join(f"{word} (is it {found[0]}?)" for word, found in near.items() if found and found != [word])
    has = f"it has {close}" if close else "got none. posref list prints them all"
    return f"{name}: must have at least one function named as an operation; {has}."


def _loaded(
    target: Any, backend: str | None, dtype: str | None, claim: str | None, trig: float | None, device: Any
) -> PythonTarget:
    """Return a target in this process."""
    name, implementation = find(target)
    library = backends.load(backend or _backend_name(name, implementation))
    dtypes = (dtype,) if dtype else _dtypes(name, implementation, library)
    check_dtypes(name, dtypes)
    absent = [d for d in dtypes if d not in library.dtypes]
    if absent:
        msg = f"{name}: backend {library.name!r} has no {', '.join(absent)} here; it has {', '.join(library.dtypes)}."
        raise TargetError(msg)
    if not any(callable(offered(implementation, op)) for op in REGISTRY):
        raise TargetError(_without_operations(name, implementation))
    if device is not None:
        _try_device(name, library, dtypes[0], device)
    stated = dict(offered(implementation, "claims", {}))
    if name == "posref":
        stated = {"float32": "angle64", "bfloat16": "angle64", "float16": "angle64"} | stated
    return PythonTarget(
        name, library.name, dtypes, settle_claims(name, stated, dtypes, claim, trig),
        f"posref check {shlex.quote(name)}" + (f" --backend {backend}" if backend else ""),
        tuple(offered(implementation, "NOTES", ())), _versions(library, implementation),
        _scalings(name, implementation), settle_supports(name, offered(implementation, "supports")),
        implementation, library, device, call_arrays.settle_in_place(name, offered(implementation, "in_place", ())),
    )  # fmt: skip


def _try_device(name: str, library: ModuleType, dtype: str, device: Any) -> None:
    """Raise `TargetError` unless an array can be made on a device."""
    try:
        library.from_numpy(np.zeros(1), dtype, device)
    except Exception as error:
        msg = f"{name}: backend {library.name!r} cannot use device {device!r} here: {invocation.in_one_line(error)}"
        raise TargetError(msg) from error


def _scalings(name: str, implementation: Any) -> tuple[str, ...]:
    known = tuple(kind.__name__ for kind in RECORDS)
    if name == "posref":
        return known
    return settle_scalings(name, offered(implementation, "scalings", SCALINGS))


def _backend_name(name: str, implementation: Any) -> str:
    """Return the array library that an implementation names; a module of its own that is called so is none."""
    found = offered(implementation, "backend", "numpy")
    if isinstance(found, ModuleType) or callable(found):
        return "numpy"
    if not isinstance(found, str):
        msg = f"{name}: backend must be the name of an array library; got {shown(repr(found), 60)}."
        raise TargetError(msg)
    return found


def _dtypes(name: str, implementation: Any, library: ModuleType) -> tuple[str, ...]:
    if name == "posref":
        return tuple(d for d in OF_DTYPE if d in library.dtypes)
    return tuple(offered(implementation, "dtypes", ("float32",)))


def _versions(library: ModuleType, implementation: Any) -> dict[str, str]:
    """Return the versions of NumPy, the array library and the package that an adapter is for."""
    found = {}
    for package in ("numpy", library.name.replace("_", "-"), offered(implementation, "PACKAGE", "numpy").split("[")[0]):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
