"""
Accuracy classes: the classes of each dtype, and the tolerance of a stored result.

The bits of every class, "low" among them, are rows of CLASSES in `posref.backends.roundoffs`. Tolerances are derived from these
when a value is proved, and stored.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BASE = ("float64", "angle64", "angle32", "low-bfloat16", "low-float16")  # those with stored tolerances
OF_FREQUENCIES = ("frequency32", "product32")  # only where there are frequencies
COMPUTED = (*OF_FREQUENCIES, "fused", "mixed")  # their tolerances are not stored: they are computed when they are asked for
OF_HALF = ("fused", "mixed", "low")  # each is two classes, one for each dtype of half precision
WIDE = ("float64", "angle64", *OF_FREQUENCIES, "angle32")
OF_DTYPE = {"float64": WIDE, "float32": WIDE[1:], "bfloat16": (*WIDE, *OF_HALF), "float16": (*WIDE, *OF_HALF)}  # tightest first
DEFAULT_CLAIM = {"float64": "float64", "float32": "angle32", "bfloat16": "mixed", "float16": "mixed"}
STORED_CLAIM = DEFAULT_CLAIM | {"bfloat16": "low", "float16": "low"}  # the class of files, which have no tolerances for "mixed"
HALF_PRECISION = Path(__file__).parent / "evidence" / "half_precision.json"  # which have "mixed": tests/half_classes.py
UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
ROUNDING = {**UNIT, "float32": 2.0**-24, "float64": 2.0**-53}
FLOOR = {"bfloat16": 2.0**-134, "float16": 2.0**-25}
MOST_TRIG = 0.0008  # the loosest that a released library documents: sincos of Direct3D, for angles within 100 pi
# (learn.microsoft.com/windows/win32/direct3dhlsl/sincos--sm4---asm-). Vulkan and WGSL allow 2**-11, within pi.
TRIG = re.compile(r"\+trig\((.*)\)$")


def with_trig(accuracy: str, error: float | None) -> str:
    """Return the name of a class whose sines and cosines may each be off by `error` as well, as WGSL's by 2**-11."""
    return accuracy if error is None else f"{accuracy}+trig({float(error)!r})"


@cache  # every verdict asks for them
def declared_in(accuracy: str) -> float | None:
    """Return the error of sines and cosines that the name of a class declares, or None."""
    declared = TRIG.search(accuracy)
    return float(declared[1]) if declared else None


@cache
def without_trig(accuracy: str) -> str:
    """Return the name of a class without the error of sines and cosines that it declares."""
    return TRIG.sub("", accuracy)


@cache
def of_mixed() -> frozenset[str]:
    """Return the operations that have class "mixed": what is measured of right code is in the table."""
    rows = json.loads(HALF_PRECISION.read_bytes())
    return frozenset(op for op, row in rows.items() if row["default"] == "mixed")


@cache
def usual_roundings(op: str) -> frozenset[str]:
    """Return the roundings to half precision that released code of an operation makes, or of those that it calls."""
    from posref.core.composition import reaches

    rows = json.loads(HALF_PRECISION.read_bytes())
    return frozenset(name for own in reaches(op) | {op} for name in rows.get(own, {}).get("roundings", ()))


def class_in(accuracy: str, dtype: str) -> str:
    """Return the name under which half-widths of a class are kept: with the dtype, where each has its own."""
    return f"{accuracy}-{dtype}" if accuracy in OF_HALF else accuracy


def base_of(accuracy: str, dtype: str) -> str:
    """Return the name of the half-widths that say what `accuracy` allows results of `dtype`, its declared error aside."""
    return class_in(without_trig(accuracy), dtype)


def tolerance_of(
    stored: Mapping[str, npt.NDArray[Any]], expected: npt.NDArray[Any], accuracy: str, dtype: str
) -> npt.NDArray[np.float64]:
    """
    Return the half-widths for results of `dtype` in the class `accuracy`.

    `stored` has the class. A result narrower than float32 has ``t + u(|y| + t) + floor``; "fused" and "low" are their own. With
    a declared error e of the trigonometry, t is ``t + e s``, where s is the stored sensitivity ``trig`` to such an error.
    """
    declared, accuracy = declared_in(accuracy), without_trig(accuracy)
    t = stored[class_in(accuracy, dtype)].astype(np.float64)
    if declared is not None and "trig" in stored:
        t = t + declared * stored["trig"].astype(np.float64)
    if accuracy in OF_HALF or dtype not in UNIT:
        return t
    widened = np.asarray(t + UNIT[dtype] * (np.abs(expected) + t) + FLOOR[dtype])
    exact = t == 0
    if exact.any():
        widened[exact] = _storage_only(expected[exact], dtype)
    return widened


def _storage_only(expected: npt.NDArray[Any], dtype: str) -> npt.NDArray[np.float64]:
    """Return the tolerance of an exact result: nothing where `dtype` represents it, else one rounding."""
    from posref.backends.rounding import round_to

    exact = round_to(expected, dtype) == expected
    return np.where(exact, 0.0, UNIT[dtype] * np.abs(expected) + FLOOR[dtype])
