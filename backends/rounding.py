"""Round float64 to narrower dtypes with a single rounding. Casts in torch, JAX and ml_dtypes round twice, through float32."""

from typing import Any

import numpy as np
import numpy.typing as npt

BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
LEAST = {"float64": -1074, "float32": -149, "float16": -24, "bfloat16": -133}  # exponent of the smallest subnormal
LARGEST = {
    "float64": float(np.finfo(np.float64).max),
    "float32": float(np.finfo(np.float32).max),
    "float16": 65504.0,
    "bfloat16": (2 - 2**-7) * 2.0**127,
}


def round_to(x: npt.NDArray[Any], dtype: str) -> npt.NDArray[np.float64]:
    """Return `x` as float64, rounded to the nearest value of `dtype`, half to even, and infinite beyond its range."""
    x = np.asarray(x, dtype=np.float64)
    if dtype == "float64":
        return x
    _, exponent = np.frexp(x)
    last = np.maximum(exponent - BITS[dtype], LEAST[dtype])  # exponent of the last bit kept
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.ldexp(np.rint(np.ldexp(x, -last)), last)  # rint is half to even; scaling by powers of two is exact
    scaled = np.where(np.abs(scaled) > LARGEST[dtype], np.copysign(np.inf, x), scaled)
    return np.where(np.isfinite(x), scaled, x)


def representable(x: npt.NDArray[Any], dtype: str) -> bool:
    """Return whether `dtype` can represent every value of `x`."""
    return bool(np.array_equal(round_to(x, dtype), np.asarray(x, dtype=np.float64)))


def bits_of(x: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """Return `x` rounded once to `dtype`, in NumPy's dtype of that name. bfloat16 is returned as uint16 with the same bits."""
    narrow = round_to(x, dtype)
    if dtype != "bfloat16":
        return narrow.astype(dtype)
    return (narrow.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
