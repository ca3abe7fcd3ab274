"""Accuracy classes: which there are for a dtype, and the tolerance of a stored result."""

import re
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
TRIG = re.compile(r"\+trig\((.*)\)$")


def with_trig(accuracy: str, error: float | None) -> str:
    """Return the name of a class whose sines and cosines may each be off by `error` as well, as WGSL's by 2**-11."""
    return accuracy if error is None else f"{accuracy}+trig({float(error)!r})"


def at_least_low(accuracy: str) -> str:
    """Return class "low", with the trigonometry that a class declares."""
    declared = TRIG.search(accuracy)
    return with_trig("low", float(declared[1]) if declared else None)


def ladder_of(dtype: str, claim: str) -> tuple[str, ...]:
    """Return the classes of a dtype, tightest first; a claim with its own trigonometry comes after the class it widens."""
    base = TRIG.sub("", claim)
    return tuple(name for c in OF_DTYPE[dtype] for name in ((c, claim) if c == base != claim else (c,)))


def tolerance_of(
    stored: Mapping[str, npt.NDArray[Any]], expected: npt.NDArray[Any], accuracy: str, dtype: str
) -> npt.NDArray[np.float64]:
    """
    Return the half-widths for results of `dtype` in the class `accuracy`.

    `stored` has the base classes. A result narrower than float32 has ``t + u(|y| + t) + floor``; class "low" is its own. With
    a declared error e of the trigonometry, t is ``t + e s``, where s is the stored sensitivity ``trig`` to such an error.
    """
    declared = TRIG.search(accuracy)
    accuracy = TRIG.sub("", accuracy)
    t = stored[f"low-{dtype}" if accuracy == "low" else accuracy].astype(np.float64)
    if declared and "trig" in stored:
        t = t + float(declared[1]) * stored["trig"].astype(np.float64)
    if accuracy == "low":
        return t
    if dtype not in UNIT:
        return t
    widened = t + UNIT[dtype] * (np.abs(expected) + t) + FLOOR[dtype]
    return np.where(t == 0, _storage_only(expected, dtype), widened)


def _storage_only(expected: npt.NDArray[Any], dtype: str) -> npt.NDArray[np.float64]:
    """Return the tolerance of an exact result: nothing where `dtype` represents it, else one rounding."""
    from posref.backends.rounding import round_to

    exact = round_to(expected, dtype) == expected
    return np.where(exact, 0.0, UNIT[dtype] * np.abs(expected) + FLOOR[dtype])
