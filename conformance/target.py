"""What is checked: anything with functions named as the operations, a program in any language, or a folder of its results."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, get_args

from posref import backends
from posref.scaling import Scaling
from posref.spec import REGISTRY

from . import classes, gradients, invoke
from .errors import Stopped, TargetError, Unsupported
from .suite import INSTALLED, Call, LoadedCase

# What an implementation that does not say knows: records are added to posref.scaling, and older code may not look at the type
SCALINGS = ("Linear", "NTKAware", "DynamicNTK", "Llama3", "YaRN")
FOLDER = Path(__file__).with_name("adapters")
ADAPTERS = tuple(sorted(file.stem for file in FOLDER.glob("[!_]*.py")))
PACKAGE = re.compile(r'^PACKAGE = "(.+)"$', re.MULTILINE)


@dataclass
class Target(ABC):
    """An implementation as the checker sees it: what it has, in which dtypes, what it claims, and a way to ask it."""

    name: str  # as the user wrote it
    library: str  # its array library, or the language of a program
    dtypes: tuple[str, ...]
    claims: Mapping[str, str]
    reproduce: str  # how a command that checks it begins
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    scalings: tuple[str, ...] = SCALINGS  # the records of posref.scaling that it knows
    kind: ClassVar[str]  # "python", "program" or "outputs"

    @abstractmethod
    def has(self, op: str) -> bool:
        """Return whether it offers an operation."""

    @abstractmethod
    def run(self, case: LoadedCase, call: Call, dtype: str) -> invoke.Arrays:
        """
        Return the outputs of one call of a case by name, on the host, reals widened to float64.

        Raises
        ------
        Unsupported
            If it does not do what the call asks.
        Failure
            If a result is wrong in shape or dtype, an input was changed, or the second call gave other bits.
        Stopped
            If the call ended without a result.
        """

    @abstractmethod
    def refuse(self, case: LoadedCase, dtype: str) -> str:
        """Return how it refused a case that it must refuse; Failure if it did not, otherwise as `run`."""

    def begin(self, case: LoadedCase) -> None:  # noqa: B027  (most have nothing to do)
        """Begin a case: state may be dropped."""

    def remarks(self) -> tuple[str, ...]:
        """Return what a report should say besides verdicts."""
        return self.notes

    def close(self) -> None:  # noqa: B027
        """Leave nothing behind."""


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

    def run(self, case: LoadedCase, call: Call, dtype: str) -> invoke.Arrays:
        """Call it twice in this process."""
        try:
            if call.cotangents:
                return gradients.run(self, case.op, call, dtype, case.flags)
            return invoke.run(self, case, call, dtype)
        except (Unsupported, invoke.Failure):
            raise
        except NotImplementedError as error:
            raise Unsupported(str(error) or "not implemented") from error
        except Exception as error:  # whatever an implementation raises is its verdict, not ours
            raise Stopped(verdict="error", message=invoke.told(error)) from error

    def refuse(self, case: LoadedCase, dtype: str) -> str:
        """Return the exception that it raises."""
        return invoke.refuse(self, case, dtype)


def load(
    target: Any = None,
    *,
    command: str | Sequence[str] | None = None,
    outputs: str | Path | None = None,
    isolate: bool = False,
    timeout: float = 30.0,
    memory: float = 8.0,
    backend: str | None = None,
    dtype: str | None = None,
    claim: str | None = None,
    trig: float | None = None,
    device: Any = None,
    suite: Path = INSTALLED,
) -> Target:
    """
    Return a target: a Python one, a program that speaks the protocol (`command`), or a folder of its results (`outputs`).

    A Python target is a module or object, or the name of a built-in adapter, ``module``, ``module:object`` or ``file.py``;
    with `isolate` it runs in a process of its own, held to `timeout` seconds a call and `memory` GiB, as a program is.

    Raises
    ------
    TargetError
        If it cannot be loaded, has no operation, or names a dtype, class or backend that does not exist.
    """
    if sum(given is not None for given in (target, command, outputs)) != 1:
        msg = "check: give one of TARGET, --command and --outputs."
        raise TargetError(msg)
    stated: dict[str, Any] = {"dtype": dtype, "claim": claim, "trig": trig}
    if outputs is not None:
        from .remote.exchange import Outputs

        return Outputs.load(Path(outputs), suite, **stated)
    if command is not None:
        from .remote.program import Program

        words = shlex.split(command) if isinstance(command, str) else list(command)
        return Program.start(words, timeout=timeout, memory=memory, suite=suite, **stated)
    if isolate:
        from .remote.serve import isolated

        return isolated(target, backend=backend, device=device, timeout=timeout, memory=memory, suite=suite, **stated)
    return load_python(target, backend=backend, device=device, **stated)


def load_python(
    target: Any, *, backend: str | None = None, dtype: str | None = None, claim: str | None = None, trig: float | None = None,
    device: Any = None,
) -> PythonTarget:  # fmt: skip
    """Return a target in this process; TargetError as `load`."""
    name, implementation = _find(target)
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
    known = tuple(kind.__name__ for kind in get_args(Scaling))
    if name == "posref":
        return known
    return settle_scalings(name, getattr(implementation, "scalings", SCALINGS))


def settle_scalings(name: str, stated: Iterable[str]) -> tuple[str, ...]:
    """Return the records of posref.scaling that an implementation states, or raise `TargetError` for one that is none."""
    known = [kind.__name__ for kind in get_args(Scaling)]
    unknown = [record for record in stated if record not in known]
    if unknown:
        msg = f"{name}: scalings must be of {', '.join(known)}; got {', '.join(map(repr, unknown))}."
        raise TargetError(msg)
    return tuple(stated)


def check_dtypes(name: str, dtypes: Iterable[str]) -> None:
    """Raise `TargetError` for a dtype that no class is defined for."""
    unknown = [d for d in dtypes if d not in classes.OF_DTYPE]
    if unknown:
        msg = f"{name}: dtypes must be of {', '.join(classes.OF_DTYPE)}; got {', '.join(map(repr, unknown))}."
        raise TargetError(msg)


def settle_claims(
    name: str, stated: Mapping[str, Any], dtypes: Iterable[str], claim: str | None, trig: float | None
) -> dict[str, str]:
    """Return the class claimed for every dtype (and float32, in which constants are asked): `claim` goes before `stated`."""
    chosen = {**classes.DEFAULT_CLAIM, **stated}
    declared = trig if trig is not None else chosen.pop("trig", None)
    chosen.pop("trig", None)
    if declared is not None and not (isinstance(declared, int | float) and 0 < declared < 1):
        msg = f"{name}: the declared error of sines and cosines (trig) must lie between 0 and 1, as 2**-11; got {declared!r}."
        raise TargetError(msg)
    unknown = set(chosen) - set(classes.OF_DTYPE)
    if unknown:
        msg = f"{name}: claims are for {', '.join(classes.OF_DTYPE)} and trig; got {', '.join(map(repr, sorted(unknown)))}."
        raise TargetError(msg)
    claims = {}
    for d in dtypes:
        wanted = claim or chosen[d]
        if wanted not in classes.OF_DTYPE[d]:
            msg = f"{name}: a claim for {d} must be one of {', '.join(classes.OF_DTYPE[d])}; got {wanted!r}."
            raise TargetError(msg)
        claims[d] = classes.with_trig(wanted, declared)
    if "float32" not in claims:
        constants = chosen["float32"] if chosen["float32"] in classes.OF_DTYPE["float32"] else "angle32"
        claims["float32"] = classes.with_trig(constants, declared)
    return claims


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
        hint = f"pip install '{package_of(target)}'" if target in ADAPTERS else "is it installed?"
        kinds = f"an adapter ({', '.join(ADAPTERS)}), module, module:object or file.py"
        msg = f"{target}: cannot import {error.name!r} ({hint}). A target is {kinds}."
        raise TargetError(msg) from error
    except Exception as error:
        msg = f"{target}: importing it raised {type(error).__name__}: {error}"
        raise TargetError(msg) from error


def package_of(adapter: str) -> str:
    """Return what pip installs for an adapter, which states it in its source: the adapter itself may not be importable."""
    found = PACKAGE.search((FOLDER / f"{adapter}.py").read_text(encoding="utf-8"))
    assert found is not None, adapter
    return found[1]


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


def _versions(library: ModuleType, implementation: Any) -> dict[str, str]:
    """Return the versions of NumPy, the array library and the package that an adapter is for."""
    found = {}
    for package in ("numpy", library.name.replace("_", "-"), getattr(implementation, "PACKAGE", "numpy").split("[")[0]):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
