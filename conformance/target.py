"""What is checked: anything with functions named as the operations."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from posref import backends
from posref.spec import REGISTRY

from . import classes
from .errors import TargetError

ADAPTERS = ("onnxruntime", "transformers")


@dataclass(frozen=True)
class Target:
    """An implementation, with its array library, dtypes and claims."""

    name: str
    implementation: Any
    backend: ModuleType
    dtypes: tuple[str, ...]
    claims: Mapping[str, str]
    notes: tuple[str, ...] = ()
    device: Any = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def function(self, op: str) -> Callable[..., Any] | None:
        """Return the implementation's function for an operation, or None."""
        found = getattr(self.implementation, op, None)
        return found if callable(found) else None

    def reset(self) -> None:
        """Begin a case: an implementation that keeps state on purpose may offer `reset`; a sequence is one case."""
        reset = getattr(self.implementation, "reset", None)
        if callable(reset):
            reset()


def load(
    target: Any, *, backend: str | None = None, dtype: str | None = None, claim: str | None = None, device: Any = None
) -> Target:
    """
    Return a target: a module or object, or the name of a built-in adapter, ``module``, ``module:object`` or ``file.py``.

    Raises
    ------
    TargetError
        If it cannot be loaded, has no operation, or names a dtype, class or backend that does not exist.
    """
    name, implementation = _find(target)
    library = backends.load(backend or _backend_name(implementation))
    dtypes = (dtype,) if dtype else _dtypes(name, implementation, library)
    unknown = [d for d in dtypes if d not in classes.OF_DTYPE]
    if unknown:
        msg = f"{name}: dtypes must be of {', '.join(classes.OF_DTYPE)}; got {', '.join(map(repr, unknown))}."
        raise TargetError(msg)
    absent = [d for d in dtypes if d not in library.dtypes]
    if absent:
        msg = f"{name}: backend {library.name!r} has no {', '.join(absent)} here; it has {', '.join(library.dtypes)}."
        raise TargetError(msg)
    if not any(callable(getattr(implementation, op, None)) for op in REGISTRY):
        msg = f"{name}: must have at least one function named as an operation: {', '.join(REGISTRY)}; got none."
        raise TargetError(msg)
    notes = tuple(getattr(implementation, "NOTES", ()))
    return Target(
        name,
        implementation,
        library,
        dtypes,
        _claims(name, implementation, dtypes, claim),
        notes,
        device,
        _versions(library),
    )


def _find(target: Any) -> tuple[str, Any]:
    """Return the target's name and its object."""
    if not isinstance(target, str):
        return getattr(target, "__name__", type(target).__name__), target
    if target in ADAPTERS:
        return target, _import(f"posref.conformance.adapters.{target}", target)
    if target.endswith(".py"):
        return target, _from_file(Path(target))
    module, _, attribute = target.partition(":")
    found = _import(module, target)
    for part in attribute.split(".") if attribute else ():
        if not hasattr(found, part):
            msg = f"{target}: {module} has no {attribute!r}."
            raise TargetError(msg)
        found = getattr(found, part)
    return target, found() if inspect.isclass(found) else found


def _import(module: str, target: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        hint = "pip install 'posref[adapters,torch]'" if target in ADAPTERS else "is it installed?"
        kinds = f"an adapter ({', '.join(ADAPTERS)}), module, module:object or file.py"
        msg = f"{target}: cannot import {error.name!r} ({hint}). A target is {kinds}."
        raise TargetError(msg) from error
    except Exception as error:
        msg = f"{target}: importing it raised {type(error).__name__}: {error}"
        raise TargetError(msg) from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        msg = f"{path}: no such file."
        raise TargetError(msg)
    spec = importlib.util.spec_from_file_location(f"posref_target_{path.stem}", path)
    if spec is None or spec.loader is None:
        msg = f"{path}: cannot be loaded as Python."
        raise TargetError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent.resolve()))  # as Python does for a script: it may import its neighbours, also later
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        msg = f"{path}: running it raised {type(error).__name__}: {error}"
        raise TargetError(msg) from error
    return module


def _backend_name(implementation: Any) -> str:
    found = getattr(implementation, "backend", "numpy")
    return found if isinstance(found, str) else "numpy"


def _dtypes(name: str, implementation: Any, library: ModuleType) -> tuple[str, ...]:
    if name == "posref":
        return tuple(d for d in classes.OF_DTYPE if d in library.dtypes)
    return tuple(getattr(implementation, "dtypes", ("float32",)))


def _claims(name: str, implementation: Any, dtypes: tuple[str, ...], claim: str | None) -> dict[str, str]:
    """Return the class claimed for every dtype."""
    claims = dict(classes.DEFAULT_CLAIM)
    if name == "posref":
        claims |= {"float32": "angle64", "bfloat16": "angle64", "float16": "angle64"}
    claims |= getattr(implementation, "claims", {})
    claims = {d: claim or claims[d] for d in dtypes}
    for d, c in claims.items():
        if c not in classes.OF_DTYPE[d]:
            msg = f"{name}: a claim for {d} must be one of {', '.join(classes.OF_DTYPE[d])}; got {c!r}."
            raise TargetError(msg)
    return claims


def _versions(library: ModuleType) -> dict[str, str]:
    found = {}
    for package in ("numpy", library.name, "transformers", "onnxruntime"):
        top = package.replace("_", "-")
        if package in sys.modules:
            try:
                found[top] = version(top)
            except PackageNotFoundError:
                continue
    return found
