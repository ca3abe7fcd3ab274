"""Invocation of an implementation in this process: the arrays of one call, the call, and the results on the host."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ..accuracy import UNIT
from ..calls import given_dtype, makes_constants, parameters_of, takes_dtype
from ..errors import Failure, TargetError, Unsupported, shown
from ..model import Arrays, Call, LoadedCase

FORMS = ("non-contiguous", "broadcast-view")  # flags that say how arrays are made
OWN_DTYPE = ("float32-tables", "half-tables")  # flags of cosines and sines in another dtype than that of x


def broadcast_axes(value: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return the axes but the last along which values do not change, so that a view of one row may stand for all."""
    axes = range(value.ndim - 1)
    return tuple(a for a in axes if value.shape[a] > 1 and np.all(value == np.take(value, [0], axis=a)))


def made(backend: Any, value: npt.NDArray[Any], dtype: str | None, device: Any, flags: tuple[str, ...]) -> Any:
    """
    Return a NumPy array in a backend's library, in the form that a case's flags ask for where the library has it.

    Around the values lies memory that is none of theirs, where the library can tell whether that was written to.
    """
    if "broadcast-view" in flags:
        axes = broadcast_axes(value)
        row = value[tuple(slice(1) if a in axes else slice(None) for a in range(value.ndim))]
        xp = np if backend.name == "numpy" else backend.namespace()  # the namespace of NumPy takes long to load
        return xp.broadcast_to(backend.from_numpy(row, dtype, device), value.shape)
    array = backend.from_numpy(value, dtype, device)
    if "non-contiguous" in flags and hasattr(backend, "strided"):
        return backend.strided(array)
    return backend.guarded(array) if value.size and value.ndim and hasattr(backend, "guarded") else array


Collected = dict[str, tuple[npt.NDArray[Any], str | None]]  # results on the host, each with the name of its dtype

NAME = type.__dict__["__name__"]  # of a class, whatever its metaclass says


class InProcess(Protocol):
    """An implementation in this process: its functions, its array library, and where its arrays go."""

    implementation: Any
    backend: Any
    device: Any
    in_place: tuple[str, ...]
    kept: Kept

    def function(self, op: str) -> Callable[..., Any] | None:
        """Return the implementation's function for an operation, or None."""


def arguments(
    target: InProcess, op: str, call: Call, dtype: str, flags: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """
    Return the positional and keyword arguments of a call by name, in the implementation's own arrays; `flags` say their form.

    Raises
    ------
    Unsupported
        If the implementation's signature lacks an option that does not have its default value.
    """
    reference = parameters_of(REGISTRY[op].function)
    arrays = {name: to_array(target, op, name, value, dtype, flags) for name, value in call.inputs.items()}
    values = {**call.params, **arrays}
    positional = {n: values[n] for n, p in reference.items() if p.kind is p.POSITIONAL_ONLY}
    keywords = {n: values[n] for n, p in reference.items() if p.kind is p.KEYWORD_ONLY and n in values}
    accepts = keywords_of(target.function(op))
    for name in [n for n in keywords if accepts is not None and n not in accepts]:
        value = keywords.pop(name)
        if name in call.inputs or value != reference[name].default:
            msg = f"no option {name!r}"
            raise Unsupported(msg)
    if takes_dtype(op):
        if accepts is None or "dtype" in accepts:
            keywords["dtype"] = target.backend.dtype(dtype)
        elif dtype in UNIT:
            msg = "no option 'dtype'"
            raise Unsupported(msg)
    return positional, keywords


def to_array(target: InProcess, op: str, name: str, value: npt.NDArray[Any], dtype: str, flags: tuple[str, ...] = ()) -> Any:
    """Return an input in the implementation's arrays; positions and frequencies are never narrower than float32."""
    narrow = given_dtype(op, name, dtype, flags)
    return made(target.backend, value, narrow if value.dtype.kind == "f" else None, target.device, flags)


CHANGED = "changed its input {}"
OVERWRITTEN = "overwrote the result of an earlier call ({}): results must not share memory"
KEPT = 4  # results: so many calls a sequence has
OVERWRITING = ("smoke", "kernel")  # tiers whose calls are made once more, with other numbers
PIECE = 1 << 16  # numbers that are compared at once
OTHER_BITS = "the same call gave other bits the second time ({})"


def same_bits(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether two arrays have the same bits."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.size <= PIECE:
        return a.tobytes() == b.tobytes()
    a, b = a.reshape(-1), b.reshape(-1)
    starts = range(0, a.size, PIECE)  # a copy of a whole large array would take new memory each time
    return all(a[start : start + PIECE].tobytes() == b[start : start + PIECE].tobytes() for start in starts)


Bits = tuple[str, tuple[int, ...], tuple[bytes | int, ...]]


def bits(x: npt.NDArray[Any]) -> Bits:
    """Return the dtype, the shape and the bits of an array; of a large one the hashes of its pieces, which take no memory."""
    if x.size <= PIECE:
        return x.dtype.str, x.shape, (x.tobytes(),)
    values = x.reshape(-1)
    starts = range(0, x.size, PIECE)
    return x.dtype.str, x.shape, tuple(hash(values[start : start + PIECE].tobytes()) for start in starts)


def expect_same(first: Arrays, second: Arrays) -> None:
    """Raise `Failure` unless two calls gave the same bits."""
    for name, value in first.items():
        if not same_bits(value, second[name]):
            raise Failure(OTHER_BITS.format(name))


def refuse(target: InProcess, case: LoadedCase, dtype: str) -> str:
    """Return the exception with which an implementation refuses a case; Failure if it computes something."""
    positional, keywords = arguments(target, case.op, case.calls[0], dtype)
    function = target.function(case.op)
    assert function is not None
    try:
        function(*positional.values(), **keywords)
    except (Unsupported, NotImplementedError):
        raise
    except Exception as error:  # any refusal will do
        return in_one_line(error)
    raise not_refused(case)


def not_refused(case: LoadedCase) -> Failure:
    """Return the failure of an implementation that computes what it must refuse."""
    return Failure(f"was not refused: {case.comment}")


def in_one_line(error: BaseException) -> str:
    """Return an exception in one line."""
    return shown(f"{kind_of(error)}: {text_of(error)}".strip(), 500)


def kind_of(value: Any) -> str:
    """Return the name of a value's class, also where the class has another way to be asked for it."""
    return str(NAME.__get__(type(value)))


def text_of(error: BaseException) -> str:
    """Return an exception's text, also where asking for it raises."""
    try:
        return str(error).strip()
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


def to_host(target: InProcess, name: str, result: Any) -> tuple[npt.NDArray[Any], str | None]:
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
    found = result.dtype.newbyteorder("=") if isinstance(result, np.ndarray | np.generic) else result.dtype
    return host, known[found] if found in known else str(found)  # the name of a dtype takes long to make


def accept(
    op: str,
    name: str,
    host: npt.NDArray[Any],
    found: str | None,
    call: Call,
    dtype: str,
    *,
    asked: bool,
    flags: tuple[str, ...] = (),
) -> npt.NDArray[Any]:
    """
    Return one output, or raise `Failure` unless its shape and dtype are such as the operation may return.

    `found` names its dtype, None for a plain number; `asked` says whether the call was told the dtype of its result.
    """
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
    if host.dtype.kind != "f" or (free and found in UNIT):
        msg = f"{name} must be real and at least float32; got {found}"
        raise Failure(msg)
    promoted = found == given_dtype(op, "cos", dtype, flags) == "float32"  # of x and wider tables
    if not free and not promoted and found != dtype:
        msg = f"{name} must be {dtype}; got {found}"
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


class Overwritten(Failure):
    """A call changed the result of an earlier one."""


class Kept:
    """The results of an implementation's last calls, as they were: a later call must not overwrite them."""

    def __init__(self) -> None:
        self._results: deque[tuple[Any, Callable[[Any], Collected], dict[str, Bits]]] = deque(maxlen=KEPT)

    def add(self, result: Any, read: Callable[[Any], Collected], found: Collected) -> None:
        """Keep a result, with what reads it, and what was read."""
        self._results.append((result, read, {name: bits(host) for name, (host, _) in found.items()}))

    def expect_unchanged(self) -> None:
        """Raise `Overwritten` if a result is no longer what it was; then none is kept any more."""
        for result, read, before in self._results:
            now = read(result)
            changed = [name for name, known in before.items() if bits(now[name][0]) != known]
            if changed:
                self._results.clear()
                raise Overwritten(OVERWRITTEN.format(changed[0]))


class ValueCall:
    """
    One call of an implementation, with arrays of its own.

    An implementation may state that it overwrites an argument (`in_place`), if the result has its shape: then what is left
    there is the result. Only of a call that is `watched` is it known which inputs it changes.
    """

    def __init__(self, target: InProcess, case: LoadedCase, call: Call, dtype: str, *, watched: bool = True) -> None:
        op, flags = case.op, case.flags
        self.target, self.op = target, op
        self.keeps = case.kind == "sequence" or case.tier in OVERWRITING
        self.positional, self.keywords = arguments(target, op, call, dtype, flags)
        self.overwritten = next((n for n in target.in_place if REGISTRY[op].result == (f"={n}",) and n in call.inputs), None)
        if self.overwritten is not None and "broadcast-view" in flags:  # whose rows share memory: nothing can be written there
            plain = tuple(flag for flag in flags if flag != "broadcast-view")
            array = to_array(target, op, self.overwritten, call.inputs[self.overwritten], dtype, plain)
            (self.positional if self.overwritten in self.positional else self.keywords)[self.overwritten] = array
        self.arrays = {n: a for n, a in {**self.positional, **self.keywords}.items() if n in call.inputs}
        given = [n for n in self.arrays if watched and n != self.overwritten]
        self.before = {n: bits(target.backend.to_numpy(self.arrays[n])) for n in given}
        self.around = self._around()
        self.asked = False  # once, of the same call

    def collected(self) -> Collected:
        """Return the results by name, on the host; `Failure` if memory that is none of this call was written to."""
        function = self.target.function(self.op)
        assert function is not None
        with np.errstate(all="ignore"):
            found = function(*self.positional.values(), **self.keywords)
        found = found if self.overwritten is None else self.arrays[self.overwritten]
        kept = collected(self.target, self.op, found)
        for name, memory in self._around().items():
            if memory != self.around[name]:
                raise Failure(AROUND.format(name))
        if self.keeps:
            self.target.kept.expect_unchanged()
            if self.overwritten is None and not self.asked:
                self.target.kept.add(found, partial(collected, self.target, self.op), kept)
        self.asked = True
        return kept

    def changed(self) -> list[str]:
        """Return the names of inputs that are no longer as they were given."""
        host = self.target.backend.to_numpy
        return [n for n, known in self.before.items() if bits(host(self.arrays[n])) != known]

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
    attempt = ValueCall(target, case, call, dtype)

    def once() -> Arrays:
        found = attempt.collected()
        told = "dtype" in attempt.keywords
        return {n: accept(op, n, x, of, call, dtype, asked=told, flags=case.flags) for n, (x, of) in found.items()}

    first = once()
    changed = attempt.changed()
    if changed:
        raise Failure(CHANGED.format(changed[0]))
    if attempt.overwritten is not None:
        attempt = ValueCall(target, case, call, dtype)
    expect_same(first, once())
    call_with_others(target, case, call, dtype)
    return first


def call_with_others(target: InProcess, case: LoadedCase, call: Call, dtype: str) -> None:
    """
    Call with other numbers of the same shapes where a case asks whether that overwrites a result; `Failure` if it does.

    These are the numbers of the call, moved by one along the first axis that has two: reals, or positions if there are none.
    Whatever else comes of it decides nothing.
    """
    if case.tier not in OVERWRITING:  # a sequence has other calls of the same shapes
        return
    arrays = REGISTRY[case.op].arrays
    reals = [name for name in call.inputs if arrays[name].kind in ("real", "wide")]
    moved = {n: _moved(x, ordered=arrays[n].ordered) if n in reals or not reals else x for n, x in call.inputs.items()}
    try:
        ValueCall(target, case, replace(call, inputs=moved), dtype, watched=False).collected()
    except (Overwritten, KeyboardInterrupt):
        raise
    except BaseException:  # a refusal, for one: the call itself was answered
        return


def _moved(x: npt.NDArray[Any], *, ordered: bool) -> npt.NDArray[Any]:
    """Return an array whose values are moved along its first axis with several; the last axis of an `ordered` one stays."""
    axis = next((k for k, size in enumerate(x.shape[: x.ndim - ordered]) if size > 1), None)
    return x if axis is None else np.roll(x, 1, axis)


AROUND = "wrote to the memory around its input {}"


def settle_in_place(name: str, stated: Any) -> tuple[str, ...]:
    """Return the arguments that an implementation says it overwrites, or raise `TargetError` for one that it cannot."""
    possible = sorted({shape[1:] for record in REGISTRY.values() for shape in record.result if shape.startswith("=")})
    given = (stated,) if isinstance(stated, str) else tuple(stated)
    if not all(argument in possible for argument in given):
        msg = f"{name}: in_place must name arguments that a result has the shape of: {', '.join(possible)}; got {stated!r}."
        raise TargetError(msg)
    return given
