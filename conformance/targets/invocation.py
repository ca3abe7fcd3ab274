"""
Invocation of an implementation in this process: the arrays of one call, the call, and the results on the host.

For gradients an implementation that has a function ``vjp(op, inputs, params, cotangents, wrt)`` is asked that, and held to it:
arrays by the name of the argument, options as the case has them, cotangents by the name of the output; it returns the gradients
of the inputs `wrt` by name. Otherwise its library differentiates the operation; what then raises or stops the gradient is
unsupported, but for what a backward pass of its own raises.
"""

from __future__ import annotations

import inspect
import operator
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from traceback import walk_tb
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ..accuracy import UNIT
from ..calls import broadcast_axes, given_dtype, makes_constants, parameters_of, takes_dtype
from ..errors import Failure, Unsupported, shown
from ..model import Arrays, Call, LoadedCase

Result = tuple[npt.NDArray[Any], str | None]  # on the host, with the name of its dtype
Collected = dict[str, Result]

NAME = type.__dict__["__name__"]  # of a class, whatever its metaclass says


class InProcess(Protocol):
    """An implementation in this process: its functions, its array library, and where its arrays go."""

    implementation: Any
    backend: Any
    device: Any
    in_place: tuple[str, ...]
    lent: Mapping[str, Any]  # arrays of the next call that are made already, in memory that the judge reads

    def function(self, op: str) -> Callable[..., Any] | None:
        """Return the implementation's function for an operation, or None."""


def arguments(
    target: InProcess, function: Callable[..., Any], op: str, call: Call, dtype: str, form: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """
    Return the positional and keyword arguments of a call by name, in the implementation's own arrays, made in a `form`.

    Raises
    ------
    Unsupported
        If the implementation's signature lacks an option that does not have its default value.
    """
    reference = parameters_of(REGISTRY[op].function)
    arrays = {
        n: target.lent[n] if n in target.lent else to_array(target, op, n, x, dtype, form) for n, x in call.inputs.items()
    }
    values = {**call.params, **arrays}
    positional = {n: values[n] for n, p in reference.items() if p.kind is p.POSITIONAL_ONLY}
    keywords = {n: values[n] for n, p in reference.items() if p.kind is p.KEYWORD_ONLY and n in values}
    accepts = keywords_of(function)
    for name in [n for n in keywords if accepts is not None and n not in accepts]:
        value = keywords.pop(name)
        if name in call.inputs or value != reference[name].default:
            msg = f"no option {name!r}"
            raise Unsupported(msg)
    if takes_dtype(op) and (accepts is None or "dtype" in accepts):
        keywords["dtype"] = target.backend.dtype(dtype)
    return positional, keywords


def overwritten_of(op: str, in_place: Sequence[str]) -> str | None:
    """Return the argument that an implementation overwrites with the result, if the result has its shape."""
    return next((name for name in in_place if REGISTRY[op].result == (f"={name}",)), None)


def to_array(target: InProcess, op: str, name: str, value: npt.NDArray[Any], dtype: str, form: str = "") -> Any:
    """
    Return an input in the implementation's arrays, in the form of a case where its library has it.

    Positions and frequencies are never narrower than float32. Around the values lies memory that is none of theirs, where the
    library can tell whether that was written to.
    """
    backend = target.backend
    narrow = given_dtype(op, name, dtype, form) if value.dtype.kind == "f" else None
    if form == "broadcast-view":
        axes = broadcast_axes(value)
        row = value[tuple(slice(1) if a in axes else slice(None) for a in range(value.ndim))]
        xp = np if backend.name == "numpy" else backend.namespace()  # the namespace of NumPy takes long to load
        return xp.broadcast_to(backend.from_numpy(row, narrow, target.device), value.shape)
    array = backend.from_numpy(value, narrow, target.device)
    if form == "non-contiguous" and hasattr(backend, "strided"):
        return backend.strided(array)
    return backend.guarded(array) if value.size and value.ndim and hasattr(backend, "guarded") else array


OVERWRITTEN = "overwrote the result of an earlier call ({}): results must not share memory"
KEPT = 4  # results: so many calls a sequence has
PIECE = 1 << 16  # numbers that are compared at once
TEXT = 100_000  # characters of an exception's text that are read
AROUND = "wrote to the memory around its input {}"
UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")
OTHER_BITS = "the same call gave other bits the second time ({})"
UNSTEADY = "answers change between identical calls: they depend on earlier calls, or on chance."


def _pieces(x: npt.NDArray[Any]) -> Iterator[bytes]:
    """Yield the bytes of an array in pieces: a copy of a whole large array would take new memory each time."""
    values = x.reshape(-1)
    for start in range(0, x.size, PIECE):
        yield values[start : start + PIECE].tobytes()


def same_bits(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether two arrays have the same bits."""
    if a is b or a.dtype != b.dtype or a.shape != b.shape:
        return a is b
    return a.tobytes() == b.tobytes() if a.size <= PIECE else all(map(operator.eq, _pieces(a), _pieces(b)))


Bits = tuple[str, tuple[int, ...], tuple[bytes | int, ...]]


def bits(x: npt.NDArray[Any]) -> Bits:
    """Return the dtype, the shape and the bits of an array; of a large one the hashes of its pieces, which take no memory."""
    return x.dtype.str, x.shape, (x.tobytes(),) if x.size <= PIECE else tuple(map(hash, _pieces(x)))


def expect_same(first: Arrays, second: Arrays) -> None:
    """Raise `Failure` unless two calls gave the same bits."""
    for name, value in first.items():
        if not same_bits(value, second[name]):
            raise Failure(OTHER_BITS.format(name))


def not_refused(case: LoadedCase) -> Failure:
    """Return the failure of an implementation that computes what it must refuse."""
    return Failure(f"was not refused: {case.comment}")


def in_one_line(error: BaseException) -> str:
    """Return an exception in one line."""
    return shown(f"{kind_of(error)}: {text_of(error)}".strip(), 500)


def kind_of(value: Any) -> str:
    """Return the name of a value's class, even if the class overrides `__class__`."""
    return str(NAME.__get__(type(value))[:TEXT])


def text_of(error: BaseException) -> str:
    """Return an exception's text, also where asking for it raises."""
    try:
        return str(error)[:TEXT].strip()
    except BaseException as again:
        return f"(its text cannot be had: {kind_of(again)})"


def collected(target: InProcess, op: str, result: Any) -> Collected:
    """Return a call's results by name, on the host, each with the name of its dtype; `Failure` if there are more or fewer."""
    names = REGISTRY[op].outputs
    if len(names) == 1 and isinstance(result, tuple) and any(hasattr(part, "shape") for part in result):
        msg = f"must return one result, {names[0]}; got a tuple of {len(result)}"
        raise Failure(msg)
    results = result if isinstance(result, tuple | list) and len(names) > 1 else (result,)
    if len(results) != len(names):
        msg = f"must return {len(names)} results, {', '.join(names)}; got {len(results)}"
        raise Failure(msg)
    return {n: to_host(target, n, r) for n, r in zip(names, results, strict=True)}


def to_host(target: InProcess, name: str, result: Any) -> Result:
    """Return a result as NumPy, reals widened to float64, and the name of its dtype; None for a Python number."""
    if result is None:
        msg = f"{name} must be an array of {target.backend.name}; got None"
        raise Failure(msg)
    if isinstance(result, np.ndarray):
        result = np.asarray(result)  # no class of its own says what is in the memory
    native = not isinstance(result, np.ndarray | np.generic | int | float) or (
        target.backend.name == "numpy" and isinstance(result, np.ndarray)
    )
    try:
        host = np.asarray(target.backend.to_numpy(result) if native else result)
    except Exception as error:
        msg = f"{name} must be an array of {target.backend.name}; got {kind_of(result)}"
        raise Failure(msg) from error
    if not hasattr(result, "dtype"):
        return host, None
    known = {target.backend.dtype(d): d for d in target.backend.dtypes}
    dtype = result.dtype.newbyteorder("=") if isinstance(result, np.ndarray | np.generic) else result.dtype
    return host, known[dtype] if dtype in known else str(dtype)  # the name of a dtype takes long to make


def accept(
    op: str,
    name: str,
    host: npt.NDArray[Any],
    found: str | None,
    call: Call,
    dtype: str,
    *,
    asked: bool,
    form: str = "",
) -> npt.NDArray[Any]:
    """
    Return one output, or raise `Failure` unless its shape and dtype are such as the operation, or its gradient, may have.

    It raises `Unsupported` for a result of another dtype than half precision, which the call was not told.

    `found` names its dtype, None for a plain number; `asked` says whether the call was told the dtype of its result.
    """
    if call.cotangents:
        return _accept_gradient(op, name, host, found, call, dtype)
    expected = call.expected[name]
    shape_fits = host.shape == expected.shape
    if REGISTRY[op].family == "bias" and expected.ndim > 2:
        shape_fits = host.ndim == expected.ndim and all(n in (1, m) for n, m in zip(host.shape, expected.shape, strict=True))
    if not shape_fits:
        msg = f"{name} must have shape {expected.shape}; got {host.shape}"
        raise Failure(msg)
    if expected.dtype.kind != "f":
        masks = REGISTRY[op].returns == "mask"
        if host.dtype.kind not in ("biu" if masks else "iu"):
            msg = f"{name} must be of {'a boolean or' if masks else 'an'} integer dtype; got {found or host.dtype}"
            raise Failure(msg)
        return host.astype(np.int64) if host.dtype.kind == "b" else host
    if found is None:  # a factor is a Python float
        return host
    free = makes_constants(op) or (expected.ndim == 0 and found != dtype) or (takes_dtype(op) and not asked)
    if free and dtype in UNIT and takes_dtype(op) and host.dtype.kind == "f" and found != dtype:
        msg = "no option 'dtype'"
        raise Unsupported(msg)
    if host.dtype.kind != "f" or (free and found in UNIT and found != dtype):
        msg = f"{name} must be real and at least float32; got {found}"
        raise Failure(msg)
    promoted = found == given_dtype(op, "cos", dtype, form) == "float32"  # of x and wider tables
    if not free and not promoted and found != dtype:
        msg = f"{name} must be {dtype}; got {found}"
        raise Failure(msg)
    return host


def _accept_gradient(
    op: str, name: str, host: npt.NDArray[Any], found: str | None, call: Call, dtype: str
) -> npt.NDArray[Any]:  # fmt: skip
    """Return the gradient of an input, or raise `Failure` unless it has the shape and dtype of that input."""
    shape, of_input = call.inputs[name].shape, given_dtype(op, name, dtype)
    if host.shape != shape:
        msg = f"the gradient of {name} must have its shape, {shape}; got {host.shape}"
        raise Failure(msg)
    if found != of_input:
        msg = f"the gradient of {name} must be {of_input}, as {name} is; got {found or 'a Python number'}"
        raise Failure(msg)
    return host


def keywords_of(function: Any) -> frozenset[str] | None:
    """Return the keywords that a function takes, or None for any."""
    try:
        return _keywords_of(function)
    except TypeError:  # it has no hash
        return _keywords_of.__wrapped__(function)


@lru_cache(maxsize=256)  # Python takes long to find them
def _keywords_of(function: Any) -> frozenset[str] | None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))


def takes_keyword(function: Any, name: str) -> bool:
    """Return whether a function takes a keyword of that name."""
    accepts = keywords_of(function)
    return accepts is None or name in accepts


class Kept:
    """The results of the calls of one case, as they were: a later call must not overwrite them."""

    def __init__(self) -> None:
        self._results: deque[tuple[Any, Callable[[Any], Collected], dict[str, Bits]]] = deque(maxlen=KEPT)

    def add(self, result: Any, read: Callable[[Any], Collected], found: Collected) -> None:
        """Keep a result, with what reads it, and what was read."""
        self._results.append((result, read, {name: bits(host) for name, (host, _) in found.items()}))

    def overwritten(self) -> tuple[str, ...]:
        """Return the names of results that are no longer what they were, of the first call that has any."""
        for result, read, before in self._results:
            now = read(result)
            changed = tuple(name for name, known in before.items() if bits(now[name][0]) != known)
            if changed:
                return changed
        return ()

    def clear(self) -> None:
        """Keep none any more."""
        self._results.clear()


class ValueCall:
    """
    One call of an implementation, with arrays of its own.

    An implementation may state that it overwrites an argument (`in_place`), if the result has its shape: then what is left
    there is the result. Only of a call that is `watched` is it known which arrays it changes.
    """

    def __init__(self, target: InProcess, case: LoadedCase, call: Call, dtype: str) -> None:
        self.target, self.case, self.call, self.dtype = target, case, call, dtype
        function = target.function(case.op)
        if function is None:
            msg = f"no {case.op}"
            raise Unsupported(msg)
        self.function = function
        self.positional, self.keywords = arguments(target, function, case.op, call, dtype, case.form)
        self.overwritten = self._overwritten()
        self.inputs = {n: a for n, a in {**self.positional, **self.keywords}.items() if n in call.inputs}
        self.cotangents = {n: to_array(target, case.op, n, x, dtype, case.form) for n, x in call.cotangents.items()}
        arrays = {**self.inputs, **{f"the cotangent of {name}": array for name, array in self.cotangents.items()}}
        self.watched = {n: array for n, array in arrays.items() if n != self.overwritten and n not in target.lent}
        self.before = {n: bits(target.backend.to_numpy(array)) for n, array in self.watched.items()}
        self.around = self._around()
        self.result: Any = None  # of the last time that it was made

    def collected(self) -> Collected:
        """Return the results by name, on the host; `Failure` if memory that is none of this call was written to."""
        target, op = self.target, self.case.op
        with np.errstate(all="ignore"):
            result = self._computed()
        self.result = result if self.overwritten is None else self.inputs[self.overwritten]
        results = collected(target, op, self.result)
        for name, memory in self._around().items():
            if memory != self.around[name]:
                raise Failure(AROUND.format(name))
        return results

    def _computed(self) -> Any:
        """Return what the function does; `Unsupported` if it passes any keywords on, and what it calls lacks one of them."""
        try:
            return self.function(*self.positional.values(), **self.keywords)
        except TypeError as error:
            lacks = UNEXPECTED.search(text_of(error))
            name = lacks[1] if lacks and lacks[1] in self.keywords and keywords_of(self.function) is None else None
            if name is None:
                raise
            if not self._is_default(name):
                msg = f"no option {name!r}"
                raise Unsupported(msg) from error
        del self.keywords[name]
        return self._computed()

    def _is_default(self, name: str) -> bool:
        """Return whether an option has its default value, so that the result is the same without it."""
        if name == "dtype" and takes_dtype(self.case.op):
            return self.dtype not in UNIT
        return name not in self.call.inputs and bool(
            self.keywords[name] == parameters_of(REGISTRY[self.case.op].function)[name].default
        )

    def keep(self, kept: Kept, results: Collected) -> None:
        """Keep its results, unless they are in an argument, where the next call may overwrite them."""
        if self.overwritten is None:
            kept.add(self.result, partial(collected, self.target, self.case.op), results)

    def changed(self) -> tuple[str, ...]:
        """Return the names of arrays that are no longer as they were given."""
        host = self.target.backend.to_numpy
        return tuple(n for n, known in self.before.items() if bits(host(self.watched[n])) != known)

    def _overwritten(self) -> str | None:
        """Return the argument that is overwritten; then it is no view whose rows share memory, where nothing can be written."""
        case, inputs = self.case, self.call.inputs
        name = overwritten_of(case.op, self.target.in_place)
        if name is not None and case.form == "broadcast-view":
            array = to_array(self.target, case.op, name, inputs[name], self.dtype)
            (self.positional if name in self.positional else self.keywords)[name] = array
        return name

    def _around(self) -> dict[str, bytes]:
        if not hasattr(self.target.backend, "around"):
            return {}
        inputs = {name: array for name, array in self.inputs.items() if name not in self.target.lent}
        return {name: self.target.backend.around(array) for name, array in inputs.items()}


class GradientCall(ValueCall):
    """A call for gradients: no input is overwritten with one."""

    def collected(self) -> Collected:
        """Return the gradients by name, on the host; `Unsupported` if neither the implementation nor its library has them."""
        vjp = getattr(self.target.implementation, "vjp", None)
        wrt = tuple(self.call.expected)
        with np.errstate(all="ignore"):
            if callable(vjp):
                result = vjp(self.case.op, dict(self.inputs), dict(self.call.params), dict(self.cotangents), wrt)
                _expect_all(result, wrt)
            else:
                result = self._differentiated(wrt)
        return {name: to_host(self.target, name, result[name]) for name in wrt}

    def _differentiated(self, wrt: tuple[str, ...]) -> dict[str, Any]:
        """Return the gradients that the library's automatic differentiation gives."""
        library, op, computed = self.target.backend, self.case.op, list[Any]()

        def outputs(*arrays: Any) -> tuple[Any, ...]:
            moved = dict(zip(wrt, arrays, strict=True))
            positional = [moved.get(name, value) for name, value in self.positional.items()]
            result = self.function(*positional, **{name: moved.get(name, value) for name, value in self.keywords.items()})
            computed[:] = result if len(REGISTRY[op].outputs) > 1 else (result,)
            return tuple(computed)

        try:
            cotangents = [self.cotangents[name] for name in REGISTRY[op].outputs]
            gradients_in_order = library.vjp(outputs, [self.inputs[name] for name in wrt], cotangents)
        except Exception as error:  # nothing was promised, and nobody is misled, unless its own backward pass raises
            if computed and not isinstance(error, Unsupported | NotImplementedError) and _is_of_others(error, library):
                raise
            msg = f"no gradient by {library.name}: {in_one_line(error)}"
            raise Unsupported(msg) from error
        written = [name for name in self.changed() if name in self.target.in_place]
        if written:
            msg = f"no gradient by {library.name}: {written[0]} is overwritten, which automatic differentiation does not see"
            raise Unsupported(msg)
        gradients = dict(zip(wrt, gradients_in_order, strict=True))
        stopped = [name for name, gradient in gradients.items() if gradient is None]
        if stopped:
            msg = f"no gradient by {library.name}: it finds no dependence of the result on {', '.join(stopped)}"
            raise Unsupported(msg)
        return gradients

    def keep(self, kept: Kept, results: Collected) -> None:
        """Keep nothing: gradients are made anew."""

    def _overwritten(self) -> None:
        return None

    def _around(self) -> dict[str, bytes]:
        return {}


def _is_of_others(error: BaseException, library: Any) -> bool:
    """Return whether an error comes through code that is neither posref's, nor its array library's, nor Python's."""
    roots = {frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in walk_tb(error.__traceback__)}
    return not roots <= {"posref", library.name, *sys.stdlib_module_names}


def _expect_all(given: Any, wrt: tuple[str, ...]) -> None:
    """Raise `Failure` unless what an implementation's `vjp` gave is a dict with every gradient."""
    if not isinstance(given, Mapping):
        msg = f"vjp must return a dict of gradients by the name of the input; got {type(given).__name__}"
        raise Failure(msg)
    missing = [name for name in wrt if given.get(name) is None]
    if missing:
        msg = f"vjp returned no gradient of {', '.join(missing)}"
        raise Failure(msg)


def call_of(target: InProcess, case: LoadedCase, call: Call, dtype: str) -> ValueCall:
    """Return a call for values, or for gradients if it has cotangents, with its arrays made."""
    return (GradientCall if call.cotangents else ValueCall)(target, case, call, dtype)
