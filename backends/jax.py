"""JAX. Without ``jax_enable_x64`` it has no float64 and no int64, so posref computes angles as int32 fractions of a turn."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .rounding import bits_of

name, float64_trigonometry = "jax", True


def __getattr__(attribute: str) -> Any:
    if attribute == "dtypes":
        wide = ("float64",) if jax.config.jax_enable_x64 else ()
        return (*wide, "float32", "float16", "bfloat16")
    msg = f"module {__name__!r} has no attribute {attribute!r}"
    raise AttributeError(msg)


def namespace() -> Any:
    """Return the array API namespace."""
    return jnp


def dtype(name: str) -> Any:
    """Return the library's dtype of that name."""
    return jnp.dtype(name)


def from_numpy(x: npt.NDArray[Any], dtype: str | None = None, device: Any = None) -> jax.Array:
    """Copy `x` to `device`, rounding once to `dtype`; int64 becomes int32 if x64 is off."""
    if dtype is None:
        narrow = x.astype(np.int32) if x.dtype == np.int64 and not jax.config.jax_enable_x64 else x.copy()
        return jax.device_put(narrow, device)
    bits = bits_of(x, dtype)
    if dtype == "bfloat16":
        return jax.device_put(jax.lax.bitcast_convert_type(jnp.asarray(bits), jnp.bfloat16), device)
    return jax.device_put(bits, device)


def to_numpy(x: jax.Array) -> npt.NDArray[Any]:
    """Copy to the host, reals widened to float64."""
    if x.dtype == jnp.bfloat16:
        x = x.astype(jnp.float32)
    host = np.asarray(x)
    return host.astype(np.float64) if host.dtype.kind == "f" else host.copy()


def synchronize(x: jax.Array) -> None:
    """Wait for pending work on `x`."""
    x.block_until_ready()


def compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` under jit."""
    compiled: Callable[..., Any] = jax.jit(function)
    return compiled


def vjp(
    function: Callable[..., Sequence[jax.Array]], arrays: Sequence[jax.Array], cotangents: Sequence[jax.Array]
) -> list[jax.Array]:
    """Return the gradients of `function` with respect to `arrays`."""
    outputs, pull = jax.vjp(lambda *moved: tuple(function(*moved)), *arrays)
    return list(pull(tuple(c.astype(y.dtype) for y, c in zip(outputs, cotangents, strict=True))))
