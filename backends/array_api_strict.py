"""array-api-strict: only what the array API standard has. One of its devices has no float64, like some hardware."""

from collections.abc import Callable
from typing import Any

import array_api_strict as xp
import numpy as np
import numpy.typing as npt

from .rounding import bits_of

name, dtypes, float64_trigonometry = "array_api_strict", ("float64", "float32"), True


def namespace() -> Any:
    """Return the array API namespace."""
    return xp


def dtype(name: str) -> Any:
    """Return the library's dtype of that name."""
    return getattr(xp, name)


def from_numpy(x: npt.NDArray[Any], dtype: str | None = None, device: Any = None) -> Any:
    """Copy `x` to `device`, rounding once to `dtype`; integers and booleans (dtype None) as they are."""
    host = x.copy() if dtype is None else bits_of(x, dtype)
    return xp.asarray(host, device=device)


def to_numpy(x: Any) -> npt.NDArray[Any]:
    """Copy to the host, reals widened to float64."""
    host = np.asarray(xp.asarray(x, device=xp.Device("CPU_DEVICE")))
    return host.astype(np.float64) if host.dtype.kind == "f" else np.array(host)


def synchronize(x: Any) -> None:
    """Wait for pending work: there is none."""


def compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`: there is no compiler."""
    return function
