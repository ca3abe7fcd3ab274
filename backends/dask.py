"""Dask arrays of NumPy: lazy, chunked, on this machine or a cluster."""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt

from .rounding import bits_of

name, dtypes, float64_trigonometry = "dask", ("float64", "float32", "float16"), True


def namespace() -> Any:
    """Return the array API namespace."""
    import array_api_compat.dask.array as xp

    return xp


def dtype(name: str) -> Any:
    """Return the library's dtype of that name."""
    return np.dtype(name)


def from_numpy(x: npt.NDArray[Any], dtype: str | None = None, device: Any = None) -> Any:
    """Wrap a copy of `x`, rounded once to `dtype`, split in two chunks along its first axis, to test chunking."""
    host = x.copy() if dtype is None else bits_of(x, dtype)
    chunks = tuple(max(1, -(-n // 2)) if axis == 0 else n for axis, n in enumerate(host.shape))
    return da.from_array(host, chunks=chunks)


def to_numpy(x: Any) -> npt.NDArray[Any]:
    """Compute `x` and copy it to NumPy, reals widened to float64."""
    host = np.asarray(x.compute(scheduler="synchronous"))
    return host.astype(np.float64) if host.dtype.kind == "f" else np.array(host)


def synchronize(x: Any) -> None:
    """Wait for pending work: nothing runs before `to_numpy`."""


def compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`: Dask builds its graph as it goes."""
    return function
