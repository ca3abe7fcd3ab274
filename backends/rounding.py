"""Round float64 to narrower dtypes with a single rounding. Casts in torch, JAX and ml_dtypes round twice, through float32."""

from typing import Any

import numpy as np
import numpy.typing as npt

BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "float8_e4m3fn": 4, "float8_e5m2": 3, "float8_e4m3fnuz": 4}
LEAST = {  # exponent of the smallest subnormal
    "float64": -1074, "float32": -149, "float16": -24, "bfloat16": -133, "float8_e4m3fn": -9, "float8_e5m2": -16,
    "float8_e4m3fnuz": -10,
}  # fmt: skip
PIECE = 1 << 15  # values
LARGEST = {
    "float64": float(np.finfo(np.float64).max),
    "float32": float(np.finfo(np.float32).max),
    "float16": 65504.0,
    "bfloat16": (2 - 2**-7) * 2.0**127,
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
    "float8_e4m3fnuz": 240.0,
}
OF_NUMPY = ("float32", "float16")
# beyond their range is the largest value: kernels store no infinity and no NaN
SATURATING = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz")


def round_to(x: npt.NDArray[Any], dtype: str) -> npt.NDArray[np.float64]:
    """
    Return `x` as float64, rounded to the nearest value of `dtype`, half to even.

    Beyond the range of `dtype` it is infinite, or the largest value of those of 8 bits.
    """
    x = np.asarray(x, dtype=np.float64)
    if dtype == "float64":
        return x
    if x.size <= PIECE:
        return _rounded(x, dtype)
    rounded, values = np.empty(x.size), x.reshape(-1)
    for part in _pieces(x.size):
        rounded[part] = _rounded(values[part], dtype)
    return rounded.reshape(x.shape)


def _pieces(size: int) -> list[slice]:
    """Return slices of an axis: a large array is rounded in pieces, whose temporary arrays fit the cache."""
    return [slice(start, start + PIECE) for start in range(0, size, PIECE)]


def _rounded(x: npt.NDArray[np.float64], dtype: str) -> npt.NDArray[np.float64]:
    if dtype in SATURATING:
        return saturated(x, BITS[dtype], LEAST[dtype], LARGEST[dtype])
    if dtype in OF_NUMPY:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return x.astype(dtype).astype(np.float64)  # one rounding, half to even: NumPy makes it of binary64
    scaled = _nearest(x, BITS[dtype], LEAST[dtype])
    scaled = np.where(np.abs(scaled) > LARGEST[dtype], np.copysign(np.inf, x), scaled)
    return np.where(np.isfinite(x), scaled, x)


def saturated(x: npt.NDArray[np.float64], bits: int, least: int, largest: float) -> npt.NDArray[np.float64]:
    """Return the nearest number of `bits` significant bits, a multiple of 2**least, half to even, at most `largest` in size."""
    return _nearest(np.clip(x, -largest, largest), bits, least)


def _nearest(x: npt.NDArray[np.float64], bits: int, least: int) -> npt.NDArray[np.float64]:
    _, exponent = np.frexp(x)
    last = np.maximum(exponent - bits, least)  # exponent of the last bit kept
    with np.errstate(invalid="ignore", over="ignore"):
        rounded: npt.NDArray[np.float64] = np.ldexp(np.rint(np.ldexp(x, -last)), last)  # half to even; powers of two are exact
    return rounded


def representable(x: npt.NDArray[Any], dtype: str) -> bool:
    """Return whether `dtype` can represent every value of `x`."""
    values = np.asarray(x, dtype=np.float64).reshape(-1)
    return all(np.array_equal(round_to(values[part], dtype), values[part]) for part in _pieces(values.size))


def bits_of(x: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """Return `x` rounded once to `dtype`, in NumPy's dtype of that name. bfloat16 is returned as uint16 with the same bits."""
    if dtype in OF_NUMPY:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.asarray(x, dtype=np.float64).astype(dtype)
    narrow = round_to(x, dtype)
    if dtype != "bfloat16":
        return narrow.astype(dtype)
    return (narrow.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
