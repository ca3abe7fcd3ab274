"""Shared by the number systems: an array over NumPy parts, its operators, and the functions that only move data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Part = npt.NDArray[Any]


class Undecided(ArithmeticError):
    """The intervals or bounds do not decide a comparison, floor or conversion."""


class Label:
    """A dtype: a name and a kind."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind

    def __repr__(self) -> str:
        return self.name


float64, float32 = Label("float64", "real floating"), Label("float32", "real floating")
storage = Label("storage", "real floating")
matrices = Label("matrices", "real floating")  # for functions of learned matrices: at least binary32
frequencies, angles = (
    Label("frequencies", "real floating"),
    Label("angles", "real floating"),
)  # factors of angles, and angles
int64, boolean = Label("int64", "integral"), Label("bool", "bool")
WIDTH = {storage: 0, float32: 1, matrices: 2, frequencies: 3, float64: 4, angles: 5}


class Array:
    """An array of a number system. `parts` are NumPy arrays of its shape: balls, or values and their error bounds."""

    __array_ufunc__ = None  # else a NumPy scalar on the left would take over

    def __init__(self, parts: tuple[Part, ...], dtype: Label, xp: NumberSystem) -> None:
        self.parts, self.dtype, self.xp = parts, dtype, xp

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return self.xp

    device = "cpu"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.parts[0].shape

    @property
    def ndim(self) -> int:
        return self.parts[0].ndim

    def __repr__(self) -> str:
        return f"{type(self.xp).__name__}{self.parts!r}"

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, key: Any) -> Array:
        return self.xp.moved(self, lambda part: part[key])

    def __bool__(self) -> bool:
        if self.dtype is not boolean or self.ndim:
            msg = "only a boolean array without axes has a truth value"
            raise TypeError(msg)
        return bool(self.parts[0])

    def __neg__(self) -> Array:
        return self.xp.negative(self)

    def __abs__(self) -> Array:
        return self.xp.abs(self)

    def __and__(self, other: Array) -> Array:
        return self.xp.logical(np.bitwise_and, self, other)

    def __or__(self, other: Array) -> Array:
        return self.xp.logical(np.bitwise_or, self, other)


def _operator(name: str, swapped: bool) -> Callable[[Array, Any], Array]:
    def method(self: Array, other: Any) -> Array:
        operation: Callable[..., Array] = getattr(self.xp, name)
        return operation(other, self) if swapped else operation(self, other)

    return method


for _symbol, _name in {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "pow": "pow",
}.items():
    setattr(Array, f"__{_symbol}__", _operator(_name, swapped=False))
    setattr(Array, f"__r{_symbol}__", _operator(_name, swapped=True))
for _symbol, _name in {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}.items():  # fmt: skip
    setattr(Array, f"__{_symbol}__", _operator(_name, swapped=False))
Array.__hash__ = None  # type: ignore[assignment]


class Info:
    """The inspection API of the standard."""

    def __init__(self, xp: NumberSystem) -> None:
        self.xp = xp

    def default_dtypes(self, *, device: Any = None) -> dict[str, Label]:
        """Return the default dtypes: `storage` for reals."""
        return {"real floating": storage, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Label]:
        """Return the real dtypes."""
        return {"float64": float64, "float32": float32}


class NumberSystem(ABC):
    """
    An array API namespace over one kind of numbers. Definitions use only the functions that it has.

    Integers and booleans are exact. A subclass says how reals compute. Mixing kinds is an error, as in array-api-strict.
    """

    computes_constants = True
    holds_factors = False  # whether a matrix product rounds its factors to storage
    float64, float32, storage, matrices, int64 = float64, float32, storage, matrices, int64
    frequencies, angles = frequencies, angles
    inf = float("inf")

    def __array_namespace_info__(self) -> Info:
        return Info(self)

    # ---- dtypes -------------------------------------------------------------------------------------------------------
    def isdtype(self, dtype: Label, kind: str | tuple[str, ...]) -> bool:
        """Return whether `dtype` is of `kind`, or of one of several."""
        if isinstance(kind, tuple):
            return any(self.isdtype(dtype, part) for part in kind)
        return dtype.kind == kind or (kind == "signed integer" and dtype is int64)

    def result_type(self, *dtypes: Label) -> Label:
        """Return the wider of real dtypes."""
        return max(dtypes, key=WIDTH.__getitem__)

    class finfo:  # noqa: N801
        """At least 32 bits for every label, because half precision only affects storage here."""

        def __init__(self, dtype: Label) -> None:
            self.bits = 64 if dtype is float64 else 32

    # ---- making arrays ------------------------------------------------------------------------------------------------
    @abstractmethod
    def real(self, values: Part, dtype: Label) -> Array:
        """Return an array of reals from NumPy float64 or integers."""

    def asarray(self, values: Any, /, *, dtype: Label | None = None, device: Any = None) -> Array:
        """Return an array from host numbers or from an array of this system."""
        if isinstance(values, Array):
            return values if dtype is None else self.astype(values, dtype)
        host = np.asarray(values)
        if dtype is None:
            dtype = {"b": boolean, "i": int64, "u": int64, "f": storage}[host.dtype.kind]
        if dtype is boolean or dtype is int64:
            return Array((host.astype(np.bool_ if dtype is boolean else np.int64),), dtype, self)
        return self.real(host, dtype)

    def arange(self, start: int, stop: int | None = None, step: int = 1, *, dtype: Label, device: Any = None) -> Array:
        """Return evenly spaced integers in `dtype`."""
        return self.asarray(np.arange(start) if stop is None else np.arange(start, stop, step), dtype=dtype)

    # ---- moving data --------------------------------------------------------------------------------------------------
    def moved(self, x: Array, move: Callable[[Part], Part]) -> Array:
        """Return `x` with `move` applied to every part."""
        return Array(tuple(np.asarray(move(part), dtype=part.dtype) for part in x.parts), x.dtype, self)

    def joined(self, arrays: Sequence[Array], join: Callable[[list[Part]], Part]) -> Array:
        """Return arrays of one kind joined part by part."""
        kinds = {x.dtype.kind for x in arrays}
        if len(kinds) != 1:
            msg = f"arrays of different kinds do not mix: {sorted(kinds)}"
            raise TypeError(msg)
        dtypes = [x.dtype for x in arrays]
        dtype = self.result_type(*dtypes) if len(dtypes) > 1 and kinds == {"real floating"} else dtypes[0]
        return Array(tuple(join(list(parts)) for parts in zip(*(x.parts for x in arrays), strict=True)), dtype, self)

    def reshape(self, x: Array, shape: tuple[int, ...]) -> Array:
        """Return `x` in another shape."""
        return self.moved(x, lambda part: part.reshape(shape))

    def broadcast_to(self, x: Array, shape: tuple[int, ...]) -> Array:
        """Return `x` repeated to `shape`."""
        return self.moved(x, lambda part: np.broadcast_to(part, shape))

    def permute_dims(self, x: Array, axes: tuple[int, ...]) -> Array:
        """Return `x` with its axes in another order."""
        return self.moved(x, lambda part: np.transpose(part, axes))

    def matrix_transpose(self, x: Array) -> Array:
        """Return `x` with the last two axes swapped."""
        return self.moved(x, lambda part: np.swapaxes(part, -1, -2))

    def take(self, x: Array, indices: Array, *, axis: int) -> Array:
        """Return the elements of `x` at one-dimensional `indices` along `axis`."""
        return self.moved(x, lambda part: np.take(part, indices.parts[0], axis=axis))

    def stack(self, arrays: Sequence[Array], *, axis: int) -> Array:
        """Return `arrays` along a new axis."""
        return self.joined(arrays, lambda parts: np.stack(parts, axis=axis))

    def concat(self, arrays: Sequence[Array], *, axis: int) -> Array:
        """Return `arrays` end to end."""
        return self.joined(arrays, lambda parts: np.concatenate(parts, axis=axis))

    def where(self, condition: Array, a: Array, b: Array) -> Array:
        """Return `a` where the condition holds, else `b`."""
        return self.joined([a, b], lambda parts: np.where(condition.parts[0], parts[0], parts[1]))

    # ---- integers and booleans, and the choice of the real operation -----------------------------------------------------
    def pair(self, a: Any, b: Any) -> tuple[Array, Array]:
        """Return both operands as arrays of one kind. A Python number takes the dtype of the other operand."""
        if not isinstance(a, Array):
            a = self._scalar(a, b.dtype)
        if not isinstance(b, Array):
            b = self._scalar(b, a.dtype)
        if a.dtype.kind != b.dtype.kind:
            msg = f"arrays of different kinds do not mix: {a.dtype} and {b.dtype}"
            raise TypeError(msg)
        return a, b

    def _scalar(self, value: Any, dtype: Label) -> Array:
        if dtype is int64 and not isinstance(value, int | np.integer):
            msg = f"integer arrays mix with integers alone, not with {value!r}: cast the array to a real dtype first"
            raise TypeError(msg)
        return self.asarray(value, dtype=dtype)

    def _binary(self, name: str, on_integers: Callable[..., Any], a: Any, b: Any) -> Array:
        a, b = self.pair(a, b)
        if a.dtype.kind == "real floating":
            operation: Callable[..., Array] = getattr(self, f"real_{name}")
            return operation(a, b, self.result_type(a.dtype, b.dtype))
        return Array((np.asarray(on_integers(a.parts[0], b.parts[0])),), a.dtype, self)

    def add(self, a: Any, b: Any) -> Array:
        """Return a + b."""
        return self._binary("add", np.add, a, b)

    def subtract(self, a: Any, b: Any) -> Array:
        """Return a - b."""
        return self.add(a, self.negative(b) if isinstance(b, Array) else -b)

    def multiply(self, a: Any, b: Any) -> Array:
        """Return a b."""
        return self._binary("multiply", np.multiply, a, b)

    def divide(self, a: Any, b: Any) -> Array:
        """Return a/b, for reals."""
        a, b = self.pair(a, b)
        return self.real_divide(a, b, self.result_type(a.dtype, b.dtype))  # type: ignore[attr-defined,no-any-return]

    def cumulative_sum(self, x: Array, *, axis: int) -> Array:
        """Return the sum of the elements up to and including each one."""
        if x.dtype.kind == "real floating":
            return self.real_cumulative_sum(x, axis)
        return Array((np.cumsum(x.parts[0], axis=axis),), int64, self)

    @abstractmethod
    def real_cumulative_sum(self, x: Array, axis: int) -> Array:
        """Return the cumulative sum of reals along `axis`."""

    def floor_divide(self, a: Any, b: Any) -> Array:
        """Return the largest integer not above a/b, only for integers. For reals it would need a proof."""
        a, b = self.pair(a, b)
        if a.dtype is not int64:
            msg = f"floor_divide is for integers; got {a.dtype}"
            raise TypeError(msg)
        return Array((np.asarray(a.parts[0] // b.parts[0]),), int64, self)

    def pow(self, a: Any, b: Any) -> Array:
        """Return a to the b, for reals."""
        a, b = self.pair(a, b)
        return self.real_pow(a, b, self.result_type(a.dtype, b.dtype))  # type: ignore[attr-defined,no-any-return]

    def minimum(self, a: Any, b: Any) -> Array:
        """Return the smaller of a and b."""
        return self._binary("minimum", np.minimum, a, b)

    def maximum(self, a: Any, b: Any) -> Array:
        """Return the larger of a and b."""
        return self._binary("maximum", np.maximum, a, b)

    def clip(self, x: Array, low: Any, high: Any) -> Array:
        """Return `x`, limited to the range from `low` to `high`; None is no limit."""
        x = x if low is None else self.maximum(x, low)
        return x if high is None else self.minimum(x, high)

    def negative(self, x: Array) -> Array:
        """Return -x."""
        first = np.asarray(-x.parts[0], dtype=x.parts[0].dtype)
        return Array((first, *x.parts[1:]), x.dtype, self)

    def abs(self, x: Array) -> Array:
        """Return the absolute value."""
        first = np.asarray(np.abs(x.parts[0]), dtype=x.parts[0].dtype)
        return Array((first, *x.parts[1:]), x.dtype, self)

    def logical(self, operation: Callable[..., Any], a: Array, b: Array) -> Array:
        """Return a bitwise combination of booleans."""
        return Array((np.asarray(operation(a.parts[0], b.parts[0])),), a.dtype, self)

    def any(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return whether any is true along `axis`."""
        return Array((np.any(x.parts[0], axis=axis, keepdims=keepdims),), boolean, self)

    def _compare(self, name: str, a: Any, b: Any) -> Array:
        a, b = self.pair(a, b)
        if a.dtype.kind == "real floating":
            return Array((self.real_compare(name, a, b),), boolean, self)  # type: ignore[attr-defined]
        return Array((np.asarray(getattr(np, name)(a.parts[0], b.parts[0])),), boolean, self)

    def less(self, a: Any, b: Any) -> Array:
        """Return a < b. Raise `Undecided` if the numbers do not decide it."""
        return self._compare("less", a, b)

    def less_equal(self, a: Any, b: Any) -> Array:
        """Return a <= b. Raise `Undecided` if the numbers do not decide it."""
        return self._compare("less_equal", a, b)

    def greater(self, a: Any, b: Any) -> Array:
        """Return a > b. Raise `Undecided` if the numbers do not decide it."""
        return self._compare("greater", a, b)

    def greater_equal(self, a: Any, b: Any) -> Array:
        """Return a >= b. Raise `Undecided` if the numbers do not decide it."""
        return self._compare("greater_equal", a, b)

    def equal(self, a: Any, b: Any) -> Array:
        """Return a == b. Raise `Undecided` if the numbers do not decide it."""
        return self._compare("equal", a, b)

    def not_equal(self, a: Any, b: Any) -> Array:
        """Return a != b. Raise `Undecided` if the numbers do not decide it."""
        return self._compare("not_equal", a, b)

    def settled(self, x: Array) -> Array:
        """Return `x`, which code computes before it is used: no later factor is multiplied into its terms."""
        return x

    def without(self, x: Array, w: Array, strength: Array, changed: Array) -> Array:
        """Return `changed`, x - strength (x . w) w along the last axis."""
        return changed

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product of the last two axes."""
        return self.sum(self.multiply(a[..., :, :, None], b[..., None, :, :]), axis=-2)

    @abstractmethod
    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return the sum along `axis`."""

    @abstractmethod
    def astype(self, x: Array, dtype: Label) -> Array:
        """Return `x` in another dtype."""


def pulled_through_cayley(u: Array, g: Array) -> Array:
    """
    Return cotangents `g` of Cayley transforms `u`, carried back to their matrices.

    If U = (I - S)(I + S)^-1, then dU = -(I + U) dS (I + S)^-1, and I + U = 2 (I + S)^-1.
    """
    xp = u.xp
    around = xp.add(xp.matrix_transpose(u), xp.asarray(np.eye(u.shape[-1]), dtype=u.dtype))
    return xp.multiply(xp.matmul(xp.matmul(around, g), around), -0.5)
