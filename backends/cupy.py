"""CuPy, NumPy's interface on NVIDIA and AMD GPUs."""

from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np
import numpy.typing as npt

from .rounding import bits_of

name, dtypes, float64_trigonometry = "cupy", ("float64", "float32", "float16"), True


def namespace() -> Any:
    """Return the array API namespace."""
    import array_api_compat.cupy as xp

    return xp


def dtype(name: str) -> Any:
    """Return the library's dtype of that name."""
    return np.dtype(name)


def from_numpy(x: npt.NDArray[Any], dtype: str | None = None, device: Any = None) -> Any:
    """Copy `x` to the GPU, rounding once to `dtype` on the host; integers and booleans (dtype None) as they are."""
    with cp.cuda.Device(device):
        return cp.asarray(x if dtype is None else bits_of(x, dtype))


def to_numpy(x: Any) -> npt.NDArray[Any]:
    """Copy to the host, reals widened to float64."""
    host = cp.asnumpy(x)
    return np.asarray(host, dtype=np.float64 if host.dtype.kind == "f" else host.dtype)


def synchronize(x: Any) -> None:
    """Wait for pending work on the device of `x`."""
    x.device.synchronize()


def compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`: CuPy cannot compile it unchanged."""
    return function


def strided(x: Any) -> Any:
    """Return `x` as a part of wider rows, with its leading axes stored in reverse. A vector takes every second element."""
    if x.ndim < 2:
        return cp.stack([x, x], axis=-1)[..., 1] if x.ndim else x
    order = tuple(reversed(range(x.ndim - 1)))
    wide = x.shape[-1] + x.shape[-1] % 2 + 4  # even: channel pairs can be viewed as complex numbers
    buffer = cp.full((*(x.shape[a] for a in order), wide), -1).astype(x.dtype)
    view = buffer[..., 2 : x.shape[-1] + 2].transpose(*order, x.ndim - 1)
    view[...] = x
    return view
