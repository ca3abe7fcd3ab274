"""Accuracy classes: which there are for a dtype, and the tolerance of a stored result."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

BASE = ("float64", "angle64", "angle32", "low-bfloat16", "low-float16")  # those with stored tolerances
OF_DTYPE = {  # tightest first
    "float64": ("float64", "angle64", "angle32"),
    "float32": ("angle64", "angle32"),
    "bfloat16": ("float64", "angle64", "angle32", "low"),
    "float16": ("float64", "angle64", "angle32", "low"),
}
DEFAULT_CLAIM = {"float64": "float64", "float32": "angle32", "bfloat16": "low", "float16": "low"}
UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
FLOOR = {"bfloat16": 2.0**-134, "float16": 2.0**-25}


def tolerance(
    stored: Mapping[str, npt.NDArray[Any]], expected: npt.NDArray[Any], accuracy: str, dtype: str
) -> npt.NDArray[np.float64]:
    """
    Return the half-widths for results of `dtype` in the class `accuracy`.

    `stored` has the base classes. A result narrower than float32 has ``t + u(|y| + t) + floor``; class "low" is its own.
    """
    if accuracy == "low":
        return stored[f"low-{dtype}"].astype(np.float64)
    t = stored[accuracy].astype(np.float64)
    if dtype not in UNIT:
        return t
    widened = t + UNIT[dtype] * (np.abs(expected) + t) + FLOOR[dtype]
    return np.where(t == 0, _storage_only(expected, dtype), widened)


def _storage_only(expected: npt.NDArray[Any], dtype: str) -> npt.NDArray[np.float64]:
    """Return the tolerance of an exact result: nothing where `dtype` represents it, else one rounding."""
    from posref.backends.rounding import round_to

    exact = round_to(expected, dtype) == expected
    return np.where(exact, 0.0, UNIT[dtype] * np.abs(expected) + FLOOR[dtype])
