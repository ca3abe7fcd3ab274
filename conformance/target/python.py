"""A Python implementation in this process."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from posref import backends
from posref.scaling import RECORDS
from posref.spec import REGISTRY

from ..accuracy import OF_DTYPE
from ..errors import Failure, Stopped, TargetError, Unsupported
from ..model import Arrays, Call, LoadedCase
from . import calling, gradients
from .base import SCALINGS, Target, check_dtypes, settle_claims, settle_scalings
from .finding import find


@dataclass
class PythonTarget(Target):
    """A module or object in this process."""

    implementation: Any = None
    backend: Any = None
    device: Any = None
    kind = "python"

    def function(self, op: str) -> Callable[..., Any] | None:
        """Return the implementation's function for an operation, or None."""
        found = getattr(self.implementation, op, None)
        return found if callable(found) else None

    def has(self, op: str) -> bool:
        """Return whether there is a function of that name."""
        return self.function(op) is not None

    def begin(self, case: LoadedCase) -> None:
        """Call `reset` where an implementation that keeps state on purpose offers it; a sequence is one case."""
        reset = getattr(self.implementation, "reset", None)
        if callable(reset):
            reset()

    def run(self, case: LoadedCase, call: Call, dtype: str) -> Arrays:
        """Call it twice in this process."""
        try:
            if call.cotangents:
                return gradients.run(self, case.op, call, dtype, case.flags)
            return calling.run(self, case, call, dtype)
        except (Unsupported, Failure):
            raise
        except NotImplementedError as error:
            raise Unsupported(str(error) or "not implemented") from error
        except Exception as error:  # whatever an implementation raises is its verdict, not ours
            raise Stopped(verdict="error", message=calling.in_one_line(error)) from error

    def refuse(self, case: LoadedCase, dtype: str) -> str:
        """Return the exception that it raises."""
        return calling.refuse(self, case, dtype)


def load_python(
    target: Any, *, backend: str | None = None, dtype: str | None = None, claim: str | None = None, trig: float | None = None,
    device: Any = None,
) -> PythonTarget:  # fmt: skip
    """Return a target in this process; TargetError as `load`."""
    name, implementation = find(target)
    library = backends.load(backend or _backend_name(implementation))
    dtypes = (dtype,) if dtype else _dtypes(name, implementation, library)
    check_dtypes(name, dtypes)
    absent = [d for d in dtypes if d not in library.dtypes]
    if absent:
        msg = f"{name}: backend {library.name!r} has no {', '.join(absent)} here; it has {', '.join(library.dtypes)}."
        raise TargetError(msg)
    if not any(callable(getattr(implementation, op, None)) for op in REGISTRY):
        msg = f"{name}: must have at least one function named as an operation: {', '.join(REGISTRY)}; got none."
        raise TargetError(msg)
    stated = dict(getattr(implementation, "claims", {}))
    if name == "posref":
        stated = {"float32": "angle64", "bfloat16": "angle64", "float16": "angle64"} | stated
    return PythonTarget(
        name, library.name, dtypes, settle_claims(name, stated, dtypes, claim, trig),
        f"posref check {shlex.quote(name)}" + (f" --backend {backend}" if backend else ""),
        tuple(getattr(implementation, "NOTES", ())), _versions(library, implementation),
        _scalings(name, implementation), implementation, library, device,
    )  # fmt: skip


def _scalings(name: str, implementation: Any) -> tuple[str, ...]:
    known = tuple(kind.__name__ for kind in RECORDS)
    if name == "posref":
        return known
    return settle_scalings(name, getattr(implementation, "scalings", SCALINGS))


def _backend_name(implementation: Any) -> str:
    found = getattr(implementation, "backend", "numpy")
    return found if isinstance(found, str) else "numpy"


def _dtypes(name: str, implementation: Any, library: ModuleType) -> tuple[str, ...]:
    if name == "posref":
        return tuple(d for d in OF_DTYPE if d in library.dtypes)
    return tuple(getattr(implementation, "dtypes", ("float32",)))


def _versions(library: ModuleType, implementation: Any) -> dict[str, str]:
    """Return the versions of NumPy, the array library and the package that an adapter is for."""
    found = {}
    for package in ("numpy", library.name.replace("_", "-"), getattr(implementation, "PACKAGE", "numpy").split("[")[0]):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
