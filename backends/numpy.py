"""NumPy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.core.arrays import numpy_namespace

from .rounding import bits_of

name, dtypes, float64_trigonometry = "numpy", ("float64", "float32", "float16"), True


def namespace() -> Any:
    """Return the array API namespace."""
    return numpy_namespace()


def dtype(name: str) -> Any:
    """Return the library's dtype of that name."""
    return np.dtype(name)


def from_numpy(x: npt.NDArray[Any], dtype: str | None = None, device: Any = None) -> npt.NDArray[Any]:
    """Copy `x`, rounding once to `dtype`; integers and booleans (dtype None) as they are."""
    return x.copy() if dtype is None else bits_of(x, dtype)


def to_numpy(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy to the host, reals widened to float64."""
    return x.astype(np.float64) if x.dtype.kind == "f" else np.array(x)


def view(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `x`, on the host."""
    return x


def synchronize(x: Any) -> None:
    """Wait for pending work: there is none."""


def compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`: NumPy has no compiler."""
    return function


def strided(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """
    Return `x` as a part of wider rows, with its leading axes stored in reverse. A vector takes every second element.

    Eight channels before and after each row, and rows before and after all of them, are NaN, or -1 among integers.
    """
    if x.ndim < 2:
        return np.stack([x, x], axis=-1)[..., 1] if x.ndim else x
    order = tuple(reversed(range(x.ndim - 1)))
    wide = x.shape[-1] + x.shape[-1] % 2 + 16  # even: channel pairs can be viewed as complex numbers
    first, *others = (x.shape[a] for a in order)
    buffer = np.full((first + 3, *others, wide), _mark(x), dtype=x.dtype)
    view = buffer[1 : first + 1, ..., 8 : x.shape[-1] + 8].transpose(*order, x.ndim - 1)
    view[...] = x
    return view


def guarded(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same values with 64 elements of NaN (-1 for integers) in memory before and after them."""
    buffer = np.full(x.size + 128, _mark(x), dtype=x.dtype)
    view = buffer[64 : x.size + 64].reshape(x.shape)
    view[...] = x
    return view


def placed(memory: memoryview, dtype: str, shape: Sequence[int], strides: Sequence[int] | None, at: int) -> npt.NDArray[Any]:
    """Return the array whose values lie in `memory` from the byte `at` on, `strides` bytes apart."""
    return np.ndarray(shape, dtype, memory, at, strides)


def around(x: npt.NDArray[Any]) -> bytes:
    """Return the bytes of the memory that holds `x`: those before and after it, or all with the elements of `x` set to 0."""
    owner = x if x.base is None else x.base
    place = x.__array_interface__["data"][0] - owner.__array_interface__["data"][0]  # `ctypes` would make objects
    if x.flags.c_contiguous and owner.flags.c_contiguous:  # nothing is copied that may be large
        memory = owner.reshape(-1).view(np.uint8)
        return bytes(memory[:place].tobytes() + memory[place + x.nbytes :].tobytes())
    copy = owner.copy()
    np.ndarray(x.shape, x.dtype, copy, place, x.strides)[...] = 0
    return copy.tobytes()


def _mark(x: npt.NDArray[Any]) -> float:
    return {"f": np.nan, "i": -1, "u": 0x7FC0 if x.dtype.itemsize == 2 else 0}.get(x.dtype.kind, 0)  # or a NaN of bfloat16
