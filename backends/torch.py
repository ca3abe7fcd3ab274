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
    """Copy to the host, with reals widened to float64, which is exact for every dtype above."""
    host = x.detach().to("cpu")
    wide = host.to(torch.float64) if host.dtype.is_floating_point else host
    return np.array(wide.numpy())


def view(x: torch.Tensor) -> npt.NDArray[Any]:
    """Return `x` on the host, not copied if it is there already. bfloat16, which NumPy lacks, becomes float32."""
    host = x.detach().to("cpu")
    return np.asarray((host.to(torch.float32) if host.dtype == torch.bfloat16 else host).resolve_conj().resolve_neg().numpy())


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
    """Return the gradients of `function` with respect to `arrays`. None for an array that the autograd graph does not reach."""
    leaves = [x.detach().requires_grad_() for x in arrays]
    with torch.enable_grad():
        outputs = function(*leaves)
    tracked = [(y, c.to(y.dtype)) for y, c in zip(outputs, cotangents, strict=True) if y.requires_grad]
    if not tracked:
        return [None] * len(leaves)
    gradients_of_outputs = [c for _, c in tracked]
    return list(torch.autograd.grad([y for y, _ in tracked], leaves, gradients_of_outputs, allow_unused=True))


def strided(x: torch.Tensor) -> torch.Tensor:
    """
    Return `x` as a part of wider rows, with its leading axes stored in reverse. A vector takes every second element.

    Eight channels before and after each row, and rows before and after all of them, are NaN, or -1 among integers.
    """
    if x.ndim < 2:
        return torch.stack([x, x], dim=-1)[..., 1] if x.ndim else x
    order = tuple(reversed(range(x.ndim - 1)))
    wide = x.shape[-1] + x.shape[-1] % 2 + 16  # even: channel pairs can be viewed as complex numbers
    first, *others = (x.shape[a] for a in order)
    buffer = torch.full((first + 3, *others, wide), _mark(x), dtype=x.dtype, device=x.device)
    return buffer[1 : first + 1, ..., 8 : x.shape[-1] + 8].permute(*order, x.ndim - 1).copy_(x)


def guarded(x: torch.Tensor) -> torch.Tensor:
    """Return the same values with 64 elements of NaN (-1 for integers) in memory before and after them."""
    buffer = torch.full((x.numel() + 128,), _mark(x), dtype=x.dtype, device=x.device)
    return buffer[64 : x.numel() + 64].view(x.shape).copy_(x)


def placed(memory: memoryview, dtype: str, shape: Sequence[int], strides: Sequence[int] | None, at: int) -> torch.Tensor:
    """Return the tensor whose values lie in `memory` from the byte `at` on, `strides` bytes apart."""
    empty = torch.empty(0, dtype=getattr(torch, dtype))
    steps = torch.empty(shape, device="meta").stride() if strides is None else [step // empty.itemsize for step in strides]
    storage = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
    return empty.set_(storage, at // empty.itemsize, shape, steps)


def around(x: torch.Tensor) -> bytes:
    """Return the bytes of the memory that holds `x`, with the elements of `x` set to 0."""
    whole = torch.empty(0, dtype=x.dtype, device=x.device).set_(x.detach().untyped_storage()).clone()
    whole.as_strided(x.shape, x.stride(), x.storage_offset()).zero_()
    memory: bytes = whole.view(torch.uint8).cpu().numpy().tobytes()
    return memory


def _mark(x: torch.Tensor) -> float:
    return torch.nan if x.dtype.is_floating_point else 0 if x.dtype == torch.bool else -1
