"""Forms of input: the same values in an array that is not contiguous, or of which one row in memory stands for many."""

from typing import Any

import numpy as np
import numpy.typing as npt

FORMS = ("non-contiguous", "broadcast-view")  # flags that say how arrays are made


def broadcast_axes(value: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return the axes but the last along which values do not change, so that a view of one row may stand for all."""
    axes = range(value.ndim - 1)
    return tuple(a for a in axes if value.shape[a] > 1 and np.all(value == np.take(value, [0], axis=a)))


def made(backend: Any, value: npt.NDArray[Any], dtype: str | None, device: Any, flags: tuple[str, ...]) -> Any:
    """Return a NumPy array in a backend's library, in the form that a case's flags ask for where the library has it."""
    if "broadcast-view" in flags:
        axes = broadcast_axes(value)
        row = value[tuple(slice(1) if a in axes else slice(None) for a in range(value.ndim))]
        return backend.namespace().broadcast_to(backend.from_numpy(row, dtype, device), value.shape)
    array = backend.from_numpy(value, dtype, device)
    return backend.strided(array) if "non-contiguous" in flags and hasattr(backend, "strided") else array
