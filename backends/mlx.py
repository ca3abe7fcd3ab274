"""MLX, on the CPU or on Metal. It computes the sine of a float64 in float32, so float64 is not offered."""

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from .rounding import bits_of

name, dtypes, float64_trigonometry = "mlx", ("float32", "float16", "bfloat16"), False


def namespace() -> Any:
    """Return the array API namespace."""
    return mx


def dtype(name: str) -> Any:
    """Return the library's dtype of that name."""
    return getattr(mx, name)


def from_numpy(x: npt.NDArray[Any], dtype: str | None = None, device: Any = None) -> Any:
    """Copy `x`, rounding once to `dtype`. All devices share the memory."""
    if dtype is None:
        return mx.array(x)
    bits = mx.array(bits_of(x, dtype))
    return bits.view(mx.bfloat16) if dtype == "bfloat16" else bits


def to_numpy(x: Any) -> npt.NDArray[Any]:
    """Copy to the host, reals widened to float64."""
    host = np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)
    return host.astype(np.float64) if host.dtype.kind == "f" else host


def synchronize(x: Any) -> None:
    """Wait for pending work on `x`."""
    mx.eval(x)


def compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, compiled for the shapes of each call."""
    compiled: Callable[..., Any] = mx.compile(function)
    return compiled


def vjp(function: Callable[..., Sequence[Any]], arrays: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Return the gradients of `function` with respect to `arrays`."""
    outputs = function(*arrays)
    cast = [c.astype(y.dtype) for y, c in zip(outputs, cotangents, strict=True)]
    _, gradients = mx.vjp(lambda *moved: list(function(*moved)), list(arrays), cast)
    return list(gradients)
