"""
A stand-in for CuPy on a machine without a GPU: NumPy computes, and CuPy's own signatures say which calls are refused.

cupy.json has them, written from CuPy's wheel (signatures.py). The stand-in refuses a function that CuPy lacks, an argument that
its function does not take, a dtype for which its ufunc has no loop, an attribute or method that its arrays lack, and arrays of
NumPy where CuPy wants its own. It counts how often the host reads a value or sends one, and keeps every call that it bound.
`install` puts it where `import cupy` finds it. What CuPy computes only a GPU can show.
"""

import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from posref import backends

TOLD: dict[str, Any] = json.loads(Path(__file__).with_name("cupy.json").read_text(encoding="utf-8"))
TAKES_HOST = ("array", "asarray", "asanyarray", "ascontiguousarray", "asnumpy", "full", "result_type", "can_cast", "isdtype")
RENAMED = {"sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder",
           "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift",
           "rshift": "right_shift", "neg": "negative", "pos": "positive", "abs": "absolute", "eq": "equal", "ne": "not_equal",
           "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}  # fmt: skip
READ = ("__bool__", "__int__", "__float__", "__complex__", "item", "tolist", "get", "tobytes")
WEAK = {bool: "?", int: "b", float: "e", complex: "F"}  # the narrowest loop that a number of Python goes into

CALLS: set[tuple[str, ...]] = set()  # name, then dtypes or types of the arguments
HOST = {"reads": 0, "copies": 0}  # of a value by the host, and to the device


class Refused(TypeError):
    """CuPy would refuse this call."""


def refuse(message: str) -> None:
    raise Refused(f"CuPy {TOLD['version']}: {message}")


def bound(name: str, signature: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Refuse arguments that a function of CuPy does not take."""
    try:
        _signature(signature).bind(*args, **options)
    except TypeError as error:
        refuse(f"{name}{signature} does not take these arguments: {error}")


def _signature(text: str, known: dict[str, inspect.Signature] = {}) -> inspect.Signature:  # noqa: B006
    if text not in known:
        scope: dict[str, Any] = {}
        exec(f"def f{text}: pass", {"nan": np.nan, "inf": np.inf}, scope)
        known[text] = inspect.signature(scope["f"])
    return known[text]


# ---- arrays -----------------------------------------------------------------------------------------------------------------
class ndarray:
    """An array, which only this module changes into NumPy's."""

    __slots__ = ("host",)
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: Any) -> None:
        self.host = np.asarray(host)

    def __array__(self, *_: Any, **__: Any) -> Any:
        refuse("implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        if method != "__call__":
            refuse(f"{ufunc.__name__}.{method} of an array of CuPy")
        return elementwise(ufunc.__name__, *args, **options)

    def __array_function__(self, function: Any, *_: Any) -> Any:
        refuse(f"numpy.{function.__name__} of an array of CuPy: ask its namespace")

    def __getitem__(self, index: Any) -> Any:
        return wrapped(self.host[placed(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, np.ndarray):
            refuse("an array of NumPy is written into one of CuPy")
        self.host[placed(index)] = host_of(value)

    def __len__(self) -> int:
        return len(self.host)

    def __iter__(self) -> Iterator[Any]:
        return (wrapped(row) for row in self.host)

    def __repr__(self) -> str:
        return f"array({self.host!r})"


def placed(index: Any) -> Any:
    """Return an index for NumPy: slices, numbers, None, an ellipsis, and CuPy's own arrays."""
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        if isinstance(part, np.ndarray | list):
            refuse(f"an index of type {type(part).__name__} is copied to the device")
    found = tuple(host_of(part) for part in parts)
    return found if isinstance(index, tuple) else found[0]


def wrapped(value: Any) -> Any:
    """Return arrays of NumPy, and its numbers, as arrays of the stand-in."""
    if isinstance(value, tuple | list):
        made = [wrapped(v) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return ndarray(value) if isinstance(value, np.ndarray | np.generic) else value


def host_of(value: Any) -> Any:
    if isinstance(value, tuple | list):
        made = [host_of(v) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value.host if isinstance(value, ndarray) else value


def kind_of(value: Any) -> str:
    if isinstance(value, ndarray | np.generic | np.ndarray):
        return str(value.dtype)
    return f"({', '.join(map(kind_of, value))})" if isinstance(value, tuple | list) else type(value).__name__


def noted(name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    CALLS.add((name, *map(kind_of, args), *(f"{key}={kind_of(value)}" for key, value in options.items())))


def attribute(name: str) -> property:
    return property(lambda self: DEVICE if name == "device" else wrapped(getattr(self.host, name)))


def method(name: str, signature: str | None) -> Callable[..., Any]:
    def called(self: ndarray, *args: Any, **options: Any) -> Any:
        if signature is not None:
            bound(f"ndarray.{name}", signature, args, options)
        noted(f"ndarray.{name}", (self, *args), options)
        HOST["reads"] += name in READ
        if name == "get":
            return self.host.copy()
        found = getattr(self.host, name)(*map(host_of, args), **{k: host_of(v) for k, v in options.items()})
        return found if name in READ else wrapped(found)

    return called


def operator(name: str) -> Callable[..., Any]:
    """Return an operator, which is a ufunc; reflected with an r before its name, in place with an i."""
    bare = name.strip("_")
    known = {*RENAMED, "add", "divmod", "invert", "matmul"}
    reflected, in_place = (bare not in known and bare[0] == letter and bare[1:] in known for letter in "ri")
    base = bare[1:] if reflected or in_place else bare
    function = RENAMED.get(base, base)

    def called(self: ndarray, *others: Any) -> Any:
        if any(other is None or isinstance(other, str | tuple | list) for other in others):
            return NotImplemented
        args = (*others, self) if reflected else (self, *others)
        call = FUNCTIONS["matmul"] if function == "matmul" else lambda *a, **o: elementwise(function, *a, **o)
        return call(*args, out=self) if in_place else call(*args)

    return called


# ---- functions --------------------------------------------------------------------------------------------------------------
def elementwise(name: str, *args: Any, **options: Any) -> Any:
    """Call a ufunc, if CuPy has a loop for these dtypes."""
    told = TOLD["cupy"].get(name)
    if told is None or "types" not in told:
        refuse(f"it has no ufunc {name}")
    ours(name, args)
    for key in options:
        if key not in ("out", "dtype", "casting", "where"):
            refuse(f"{name} takes no {key}")
    noted(name, args, options)
    result = getattr(np, name)(*map(host_of, args), **{k: host_of(v) for k, v in options.items()})
    if options.get("dtype") is None:
        loop(name, told["types"], args, result)
    return options["out"] if "out" in options and options["out"] is not None else wrapped(result)


def loop(name: str, types: list[str], args: tuple[Any, ...], result: Any) -> None:
    """Refuse dtypes for which a ufunc of CuPy has no loop, or whose loop gives another dtype than NumPy's."""
    given = [arg.dtype.char if isinstance(arg, ndarray | np.generic) else WEAK[type(arg)] for arg in args]
    strong = [isinstance(arg, ndarray | np.generic) for arg in args]
    for inner, outer in (row.split("->") for row in types if "E" not in row):  # E is bfloat16, which NumPy lacks
        if all(np.can_cast(a, b) if s else weakly(a, b) for a, b, s in zip(given, inner, strong, strict=True)):
            first = result[0] if isinstance(result, tuple) else result
            if np.dtype(outer[0]) != first.dtype:
                refuse(f"{name} of {', '.join(map(kind_of, args))} gives {np.dtype(outer[0])}, where NumPy gives {first.dtype}")
            return
    refuse(f"{name} has no loop for {', '.join(map(kind_of, args))}")


def weakly(narrowest: str, of_loop: str) -> bool:
    """Return whether a number of Python goes into a loop: its kind is no wider."""
    order = "?biufc"
    return order.index(np.dtype(narrowest).kind if narrowest != "?" else "?") <= order.index(
        "?" if of_loop == "?" else "i" if np.dtype(of_loop).kind == "u" else np.dtype(of_loop).kind
    )


def ours(name: str, args: Any) -> None:
    """Refuse arrays of NumPy, and of other libraries, among the arguments of a function."""
    for arg in args:
        if isinstance(arg, tuple | list):
            ours(name, arg)
        elif isinstance(arg, np.ndarray) or (hasattr(arg, "__dlpack__") and not isinstance(arg, ndarray)):
            refuse(f"{name} is given an array of {type(arg).__module__}, unsupported type {type(arg)}")


def function(name: str, told: Mapping[str, Any], original: Callable[..., Any] | None) -> Callable[..., Any]:
    if told["kind"] == "ufunc":
        return lambda *args, **options: elementwise(name.rpartition(".")[2], *args, **options)

    def called(*args: Any, **options: Any) -> Any:
        if told["signature"] is not None:
            bound(name, told["signature"], args, options)
        if original is None:
            refuse(f"it has {name}, but NumPy does not: add it to the stand-in")
        values = (*args, *options.values())
        if name not in TAKES_HOST:
            ours(name, values)
        elif name not in ("asnumpy", "result_type", "can_cast", "isdtype"):
            HOST["copies"] += any(not isinstance(value, ndarray) for value in args[:1])
        noted(name, args, options)
        found = original(*map(host_of, args), **{k: host_of(v) for k, v in options.items() if k != "blocking"})
        if "types" in told and len(args) == told["nin"]:
            loop(name, told["types"], args, found)
        return options["out"] if options.get("out") is not None else wrapped(found)

    called.__name__ = name
    return called


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    HOST["reads"] += 1
    return np.array(host_of(a), order=order)


def clip(a: Any, a_min: Any, a_max: Any, out: Any = None) -> Any:
    return np.clip(a, a_min, a_max, out=out)


# ---- the module -------------------------------------------------------------------------------------------------------------
class Device:
    """The only device, also as a context."""

    id = 0

    def __init__(self, device: Any = None) -> None:
        pass

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device)

    def __hash__(self) -> int:
        return 0

    def synchronize(self) -> None:
        """Do nothing: NumPy has computed."""


class Stream(nullcontext):  # type: ignore[type-arg]
    """A stream, as a context."""

    def __init__(self, **_: Any) -> None:
        super().__init__(self)

    def synchronize(self) -> None:
        """Do nothing: NumPy has computed."""


DEVICE = Device()
FUNCTIONS: dict[str, Callable[..., Any]] = {}
OWN = {"asnumpy": asnumpy, "ndarray": ndarray, "bool": np.bool_}


def finished() -> None:
    """Give the class of arrays what CuPy's has."""
    told = TOLD["ndarray"]
    for name in told["attributes"]:
        if hasattr(np.ndarray, name) and not hasattr(ndarray, name):
            setattr(ndarray, name, attribute(name))
    ufuncs = {*RENAMED, "add", "invert", "matmul", "divmod"}
    for name, signature in told["methods"].items():
        bare = name.strip("_")
        if name in ndarray.__dict__ and name != "__hash__":
            continue
        if name.startswith("__") and ({bare, bare[1:]} & ufuncs):
            setattr(ndarray, name, operator(name))
        elif hasattr(np.ndarray, name) or name == "get":
            setattr(ndarray, name, method(name, signature))
    ndarray.__module__ = "cupy"


@cache
def module() -> ModuleType:
    """Return a module with the names that CuPy has, as far as NumPy can stand for them."""
    made = ModuleType("cupy")
    for under in ("cupy", "linalg"):
        here = made if under == "cupy" else ModuleType("cupy.linalg")
        of_numpy = np if under == "cupy" else np.linalg
        for name, told in TOLD[under].items():
            original = {"clip": clip}.get(name) or getattr(of_numpy, name, None)
            if told["kind"] in ("function", "ufunc"):
                full = name if under == "cupy" else f"linalg.{name}"
                value = OWN.get(name) or function(full, told, original)
                FUNCTIONS.setdefault(full, value)
                setattr(here, name, value)
            elif name in OWN or original is not None or told["kind"] == "constant":
                setattr(here, name, OWN.get(name, original))
        if here is not made:
            setattr(made, under, here)
    made.fft = ModuleType("cupy.fft")  # type: ignore[attr-defined]
    made.cuda = ModuleType("cupy.cuda")  # type: ignore[attr-defined]
    made.cuda.device = ModuleType("cupy.cuda.device")
    made.cuda.device.Device, made.cuda.Device, made.cuda.Stream = Device, Device, Stream
    made.__version__ = f"{TOLD['version']} (a stand-in)"  # type: ignore[attr-defined]
    return made


finished()


def install() -> ModuleType:
    """Have `import cupy` find the stand-in, and return it."""
    made = module()
    sys.modules |= {found.__name__: found for found in (made, made.linalg, made.fft, made.cuda, made.cuda.device)}
    return made


@contextmanager
def installed() -> Iterator[ModuleType]:
    """Have `import cupy` find the stand-in for a while. What was imported with it is forgotten after."""
    before = of_cupy()
    for name in before:
        del sys.modules[name]
    made = install()
    backends.load.cache_clear()
    try:
        yield made
    finally:
        backends.load.cache_clear()
        for name in of_cupy():
            parent, _, last = name.rpartition(".")
            if last == "cupy" and parent in sys.modules:
                vars(sys.modules[parent]).pop(last, None)
            del sys.modules[name]
        sys.modules.update(before)


def of_cupy() -> dict[str, ModuleType]:
    """Return the modules of CuPy, and those for it."""
    return {name: found for name, found in sys.modules.items() if "cupy" in name.split(".")}
