"""Python targets: which functions of a module, file or object implement operations, and their calls in this process."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import metadata
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from posref import backends
from posref.scaling import RECORDS
from posref.spec import REGISTRY

from ..accuracy import OF_DTYPE, TRIG
from ..calls import takes_dtype
from ..errors import Failure, PosrefError, TargetError, Unsupported, shown
from ..model import LoadedCase
from . import invocation, limits
from .base import SCALINGS, checked_claims, checked_scalings, checked_supports, expect_among
from .replies import CalledTarget, Reply

FOLDER = Path(__file__).parents[1] / "adapters"
ADAPTERS = tuple(sorted(file.stem for file in FOLDER.glob("[!_]*.py")))
PACKAGE = re.compile(r'^PACKAGE = "(.+)"$', re.MULTILINE)
HALF = 'checked in float32 only; for bfloat16 add --dtype bfloat16, or dtypes = ("float32", "bfloat16") to the code'
UNSTATED = 'it is given NumPy arrays, since it states no backend: write backend = "{0}" in it, or pass --backend {0}'
MOST = 1000  # entries of a list that a target states


def compiler_limits_reached() -> int:
    """Return how often torch.compile has reached its limit of variants of one function in this process."""
    utilities = sys.modules.get("torch._dynamo.utils")  # a target that compiles nothing does not pay for the import
    reasons = getattr(utilities, "counters", {}).get("unimplemented", {})
    return sum(times for reason, times in reasons.items() if "recompile limit exceeded" in str(reason))


def compiler_remarks(before: int) -> tuple[str, ...]:
    """Return a note for a report if torch.compile has given up since there were `before`."""
    if compiler_limits_reached() <= before:
        return ()
    limit = getattr(sys.modules.get("torch._dynamo.config"), "recompile_limit", 8)
    return (
        f"torch.compile reached its limit of {limit} variants of one function: other calls ran uncompiled, or raised. For "
        "compiled code to be checked, set torch._dynamo.config.recompile_limit = 1000 in the target.",
    )


@dataclass
class PythonTarget(CalledTarget):
    """A module or object in this process."""

    implementation: Any = None
    backend: Any = None
    device: Any = None
    in_place: tuple[str, ...] = ()  # the arguments that it overwrites with its result
    kept: invocation.Kept = field(default_factory=invocation.Kept)
    lent: Mapping[str, Any] = field(default_factory=dict)  # arrays of the next call, in memory that the judge reads
    given_up: int = field(default_factory=compiler_limits_reached)  # by torch.compile, before it is asked
    unstated: str = ""  # the array library that it imports, where it names none
    kind = "python"

    def remarks(self) -> tuple[str, ...]:
        """Return the implementation's notes, and whether torch.compile gave up."""
        return (*self.notes, *compiler_remarks(self.given_up))

    def function(self, op: str) -> Callable[..., Any] | None:
        """Return the implementation's function for an operation, or None."""
        member = offered(self.implementation, op)
        return member if callable(member) else None

    def stated(self) -> dict[str, Any]:
        """Return what it states of itself, as the protocol has it in the reply to start."""
        claims: dict[str, Any] = {d: TRIG.sub("", c) for d, c in self.claims.items()}
        declared = {float(match[1]) for c in self.claims.values() if (match := TRIG.search(c))}
        operations = [op for op in REGISTRY if self.has(op)]
        with_gradients = list(filter(self.has_gradients, operations))
        own_dtype = [op for op in operations if takes_dtype(op) and not self.is_told_dtype(op)]
        return {
            "implementation": {"name": self.name, "language": f"Python, {self.library}"},
            "operations": operations, "dtypes": list(self.dtypes),
            "vjp": with_gradients, **({} if with_gradients else {"no_vjp": self.no_gradients("")}),
            "claims": claims | ({"trig": max(declared)} if declared else {}),
            "scalings": list(self.scalings), **({} if self.supports is None else {"supports": self.supports}),
            "own_dtype": own_dtype, "repeats": True, "notes": list(self.notes), "versions": dict(self.versions),
        }  # fmt: skip

    def has(self, op: str) -> bool:
        """Return whether there is a function of that name."""
        return self.function(op) is not None

    def has_gradients(self, op: str) -> bool:
        """Return whether it has a `vjp`, or its library differentiates."""
        return hasattr(self.backend, "vjp") or callable(offered(self.implementation, "vjp"))

    def no_gradients(self, op: str) -> str:
        """Return that its library does not differentiate."""
        return f"{self.library} has no automatic gradients: define vjp()"

    def is_told_dtype(self, op: str) -> bool:
        """Return whether a function takes the dtype of its result."""
        return takes_dtype(op) and invocation.takes_keyword(self.function(op), "dtype")

    def reply(self, case: LoadedCase, step: int, dtype: str, calls: int = 1, *, again: bool = False) -> Reply:
        """Call it in this process, with new arrays; whatever it raises is in the reply."""
        reply = _caught(lambda: self._reply(case, step, dtype, calls))
        foreign = self.unstated and reply.status == "error" and re.search("numpy|ndarray|tensor", reply.message, re.IGNORECASE)
        return Reply("error", UNSTATED.format(self.unstated)) if foreign else reply

    def _reply(self, case: LoadedCase, step: int, dtype: str, calls: int) -> Reply:
        if step == 0 and calls == 1:
            self._reset()
        asked = invocation.call_of(self, case, case.calls[step], dtype)
        results = asked.collected()
        changed, overwrote = asked.changed(), self.kept.overwritten()
        if calls == 1:
            asked.keep(self.kept, results)
        return Reply("ok", "", results, changed, overwrote)

    def _reset(self) -> None:
        """Call `reset` where an implementation that keeps state on purpose offers it; a sequence is one case."""
        self.kept.clear()
        reset = offered(self.implementation, "reset")
        if callable(reset):
            reset()


def _caught(call: Callable[[], Reply]) -> Reply:
    """Return the reply to a call; what an implementation raises is its verdict, not ours."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except (Unsupported, NotImplementedError) as error:
        return Reply("unsupported", invocation.text_of(error) or "not implemented")
    except Failure as failure:  # a result that is none
        return Reply("ok", invocation.text_of(failure))
    except BaseException as error:  # also SystemExit
        return Reply("error", invocation.in_one_line(error))


def offered(implementation: Any, name: str, default: Any = None) -> Any:
    """Return an attribute of an implementation, or `default` if it has none; `TargetError` if it raises anything else."""
    try:
        return getattr(implementation, name, default)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        msg = f"{type(implementation).__name__}: reading {name!r} of it raised {invocation.in_one_line(error)}"
        raise TargetError(msg) from error


def listed(implementation: Any, name: str, default: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """Return a list that an implementation states; `TargetError` if it has no end."""
    words = tuple(islice(offered(implementation, name, default), MOST + 1))
    if len(words) > MOST:
        msg = f"{type(implementation).__name__}: {name} must have at most {MOST} entries; got more."
        raise TargetError(msg)
    return words


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
        name = target if isinstance(target, str) else type(target).__name__
        msg = f"{name}: loading it raised {invocation.in_one_line(error)}"
        raise TargetError(msg) from error


def _without_operations(name: str, implementation: Any) -> str:
    """Return the sentence that refuses a target of whose functions none is named as an operation."""
    if inspect.isroutine(implementation):
        return f"{name}: is itself a function; must have functions named as operations. Name the module or file that has it."
    near = {word: get_close_matches(word, REGISTRY, n=1, cutoff=0.75) for word in dir(implementation) if word[0] != "_"}
    close = ", ".join(f"{word} (is it {matches[0]}?)" for word, matches in near.items() if matches and matches != [word])
    has = f"it has {close}" if close else "got none. posref list prints them all"
    return f"{name}: must have at least one function named as an operation; {has}."


def _loaded(
    target: Any, backend: str | None, dtype: str | None, claim: str | None, trig: float | None, device: Any
) -> PythonTarget:
    """Return a target in this process."""
    name, implementation = find(target)
    try:
        library = backends.load(backend or _backend_name(name, implementation))
    except ValueError as error:
        if not str(error).startswith("backends.load: name "):
            raise
        raise TargetError(str(error).replace("backends.load: name", "check: backend", 1)) from error
    dtypes = (dtype,) if dtype else _dtypes(name, implementation, library)
    expect_among(name, "dtypes", dtypes, OF_DTYPE)
    absent = [d for d in dtypes if d not in library.dtypes]
    if absent:
        msg = f"{name}: backend {library.name!r} has no {', '.join(absent)} here; it has {', '.join(library.dtypes)}."
        raise TargetError(msg)
    if not any(callable(offered(implementation, op)) for op in REGISTRY):
        raise TargetError(_without_operations(name, implementation))
    if device is not None:
        try:
            library.from_numpy(np.zeros(1), dtypes[0], device)
        except Exception as error:
            msg = f"{name}: backend {library.name!r} cannot use device {device!r} here: {invocation.in_one_line(error)}"
            raise TargetError(msg) from error
    stated = dict(offered(implementation, "claims", {}))
    if name == "posref":
        stated = {"float32": "angle64", "bfloat16": "angle64", "float16": "angle64"} | stated
    every_scaling = tuple(kind.__name__ for kind in RECORDS)
    return PythonTarget(
        name, library.name, dtypes, checked_claims(name, stated, dtypes, claim, trig),
        f"posref check {shlex.quote(name)}" + (f" --backend {backend}" if backend else ""),
        (*listed(implementation, "NOTES"), *([] if dtype else _of_dtypes(implementation, library))),
        _versions(library, implementation),
        every_scaling if name == "posref" else checked_scalings(name, listed(implementation, "scalings", SCALINGS)),
        checked_supports(name, offered(implementation, "supports")),
        implementation, library, device, _in_place(name, implementation), unstated="" if backend else _unstated(implementation),
    )  # fmt: skip


def _unstated(implementation: Any) -> str:
    """Return the array library, other than NumPy, that the module of an implementation without `backend` imports."""
    module = implementation if isinstance(implementation, ModuleType) else inspect.getmodule(type(implementation))
    imported = {v.__name__.partition(".")[0] for v in vars(module or object).values() if isinstance(v, ModuleType)}
    imported -= {"numpy", "posref", *sys.stdlib_module_names}
    if not imported or hasattr(implementation, "backend"):
        return ""
    return next((name for name in backends.names() if name in imported), "")


def _in_place(name: str, implementation: Any) -> tuple[str, ...]:
    """Return the arguments overwritten by an implementation, as it states; raise `TargetError` for an impossible one."""
    possible = sorted({shape[1:] for record in REGISTRY.values() for shape in record.result if shape.startswith("=")})
    stated = offered(implementation, "in_place", ())
    arguments = (stated,) if isinstance(stated, str) else listed(implementation, "in_place")
    if not all(argument in possible for argument in arguments):
        got = stated if isinstance(stated, str) else arguments
        msg = f"{name}: in_place must name arguments that a result has the shape of: {', '.join(possible)}; got {got!r}."
        raise TargetError(msg)
    return arguments


def _backend_name(name: str, implementation: Any) -> str:
    """Return the array library that an implementation names; a module of its own that is called so is none."""
    backend = offered(implementation, "backend", "numpy")
    if isinstance(backend, ModuleType) or callable(backend):
        return "numpy"
    if not isinstance(backend, str):
        msg = f"{name}: backend must be the name of an array library; got {shown(repr(backend), 60)}."
        raise TargetError(msg)
    return backend


def _dtypes(name: str, implementation: Any, library: ModuleType) -> tuple[str, ...]:
    if name == "posref":
        return tuple(d for d in OF_DTYPE if d in library.dtypes)
    return listed(implementation, "dtypes", ("float32",))


def _of_dtypes(implementation: Any, library: ModuleType) -> list[str]:
    """Return that half precision is not asked, if the library has it and the implementation does not say whether it does."""
    is_unsaid = offered(implementation, "dtypes", None) is None and "bfloat16" in library.dtypes
    has_reals = any(record.returns == "real" and callable(offered(implementation, op)) for op, record in REGISTRY.items())
    return [HALF] * (is_unsaid and has_reals and library.name != "posref")


def _versions(library: ModuleType, implementation: Any) -> dict[str, str]:
    """Return the versions of NumPy, the array library and the package that an adapter is for."""
    packages = ("numpy", library.name.replace("_", "-"), offered(implementation, "PACKAGE", "numpy").split("[")[0])
    versions = {package: _version(package) for package in packages}
    return {package: version for package, version in versions.items() if version is not None}


@cache
def _version(package: str) -> str | None:
    """Return the installed version of a package, read once by a process: looking it up takes longer than most calls."""
    try:
        return np.__version__ if package == "numpy" else metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def find(target: Any) -> tuple[str, Any]:
    """Return the target's name and its object."""
    if not isinstance(target, str):
        return getattr(target, "__name__", type(target).__name__), target
    if target in ADAPTERS:
        return target, _import(f"posref.conformance.adapters.{target}", target)
    if target.endswith(".py"):
        return target, _from_file(Path(target))
    module, _, attribute = target.partition(":")
    member = _import(module, target)
    for part in attribute.split(".") if attribute else ():
        if not hasattr(member, part):
            msg = f"{target}: {module} has no {attribute!r}."
            raise TargetError(msg)
        member = getattr(member, part)
    return target, member() if inspect.isclass(member) else member


def _import(module: str, target: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if target in ADAPTERS:
            package = missing if missing in backends.names() else package_of(target)
            msg = f"{target}: cannot import {missing!r}: pip install '{package}'"
            raise TargetError(msg) from error
        kinds = f"an adapter ({', '.join(ADAPTERS)}), module, module:object or file.py"
        file = f" A file is given alone: {module}." if module.endswith(".py") else ""
        msg = f"{target}: cannot import {error.name!r} (is it installed?). A target is {kinds}.{file}"
        raise TargetError(msg) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        msg = f"{target}: importing it raised {invocation.in_one_line(error)}"
        raise TargetError(msg) from error


def package_of(adapter: str) -> str:
    """Return what pip installs for an adapter, which states it in its source: the adapter itself may not be importable."""
    match = PACKAGE.search((FOLDER / f"{adapter}.py").read_text(encoding="utf-8"))
    assert match is not None, adapter
    return match[1]


def _where(error: BaseException) -> str:
    """Return the file and the line where an exception was raised, if that is known."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith("<") and Path(frame.filename) != Path(__file__)]
    return f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        msg = f"{path}: no such file."
        raise TargetError(msg)
    if path.stat().st_size > limits.SOURCE:
        most = limits.SOURCE >> 20
        msg = f"{path}: a Python file must be at most {most} MiB, as Python compiles it whole. Load numbers from another file."
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
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        msg = f"{path}: running it raised {invocation.in_one_line(error)}{_where(error)}"
        raise TargetError(msg) from error
    return module
