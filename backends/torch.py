"""PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from .rounding import bits_of

name, dtypes, float64_trigonometry = "torch", ("float64", "float32", "float16", "bfloat16"), True


def namespace() -> Any:
    """Return the array API namespace."""
    import array_api_compat.torch as xp

    return xp


def dtype(name: str) -> Any:
    """Return the library's dtype of that name."""
    return getattr(torch, name)


def from_numpy(x: npt.NDArray[Any], dtype: str | None = None, device: Any = None) -> torch.Tensor:
    """Copy `x` to `device`, rounding once to `dtype`; integers and booleans (dtype None) as they are."""
    if dtype is None:
        return torch.from_numpy(x.copy()).to(device)
    bits = torch.from_numpy(np.ascontiguousarray(bits_of(x, dtype)))  # round once, on the host; then copy bits
    bits = bits.reshape(x.shape)  # ascontiguousarray gives a 0-d array an axis
    return (bits.view(torch.bfloat16) if dtype == "bfloat16" else bits).to(device)


def to_numpy(x: torch.Tensor) -> npt.NDArray[Any]:
    """Copy to the host, reals widened to float64, which is exact for every dtype above."""
    host = x.detach().to("cpu")
    wide = host.to(torch.float64) if host.dtype.is_floating_point else host
    return np.array(wide.numpy())


def synchronize(x: torch.Tensor) -> None:
    """Wait for pending work on the device of `x`."""
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)


def compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` compiled as one graph."""
    compiled: Callable[..., Any] = torch.compile(function, fullgraph=True)
    return compiled
