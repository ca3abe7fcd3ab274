"""PyTorch."""

from collections.abc import Callable, Sequence
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


def vjp(
    function: Callable[..., Sequence[torch.Tensor]], arrays: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    """Return the gradients of `function` in `arrays` by autograd; None where the graph does not reach an array."""
    leaves = [x.detach().requires_grad_() for x in arrays]
    with torch.enable_grad():
        outputs = function(*leaves)
    tracked = [(y, c.to(y.dtype)) for y, c in zip(outputs, cotangents, strict=True) if y.requires_grad]
    if not tracked:
        return [None] * len(leaves)
    given = [c for _, c in tracked]
    return list(torch.autograd.grad([y for y, _ in tracked], leaves, given, allow_unused=True))


def strided(x: torch.Tensor) -> torch.Tensor:
    """Return `x` as a part of wider rows, with its leading axes stored in reverse; a vector takes every second element."""
    if x.ndim < 2:
        return torch.stack([x, x], dim=-1)[..., 1] if x.ndim else x
    order = tuple(reversed(range(x.ndim - 1)))
    wide = x.shape[-1] + x.shape[-1] % 2 + 4  # even, so that pairs can be viewed as complex numbers
    buffer = torch.full((*(x.shape[a] for a in order), wide), -1, device=x.device).to(x.dtype)
    return buffer[..., 2 : x.shape[-1] + 2].permute(*order, x.ndim - 1).copy_(x)
