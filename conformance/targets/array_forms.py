"""Forms of input: the same values in an array that is not contiguous, or of which one row in memory stands for many."""

from typing import Any

import numpy as np
import numpy.typing as npt

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
