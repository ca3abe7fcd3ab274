"""
The axes of arrays as the registry writes them: alternatives, letters, and expressions of letters and options.

``"D | *R T D"`` has two alternatives, the second of three axes; ``*R`` stands for any number of them, and a ``~`` says that
an axis may also be 1 or missing. `posref.spec.Axes` has the whole grammar.
"""

import math
from collections.abc import Mapping
from functools import cache
from types import CodeType
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY, Axes

FUNCTIONS = {"sum": sum, "len": len, "min": min, "max": max, "prod": math.prod}  # that expressions may use


def alternatives(shape: str) -> list[list[str]]:
    """Return the axes of every alternative of a shape."""
    return [way.split() for way in shape.split("|")]


def is_star(axis: str) -> bool:
    """Return whether an axis stands for any number of them."""
    return axis.lstrip("~").startswith("*")


def result_axes(op: str, output: str, which: int) -> list[str]:
    """Return the axes of one of an operation's outputs, for alternative `which` of its arrays."""
    record = REGISTRY[op]
    shape = record.result[record.outputs.index(output)]
    ways = alternatives(record.arrays[shape[1:]].shape if shape.startswith("=") else shape)
    return ways[min(which, len(ways) - 1)]


def value_of(text: str, known: Mapping[str, Any]) -> Any:
    """Return the value of an expression of the registry."""
    return eval(_compiled(text), {"__builtins__": FUNCTIONS}, dict(known))


def names_in(text: str) -> set[str]:
    """Return the options and sizes that an expression speaks of."""
    return set(_compiled(text).co_names) - set(FUNCTIONS)


def holds(text: str, known: Mapping[str, Any]) -> bool:
    """Return whether a requirement holds; one that speaks of what is not there does."""
    return not names_in(text) <= set(known) or bool(value_of(text, known))


def in_order(ends: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return intervals whose ends are in order: the last axis holds the lower ends, then the upper ones."""
    return np.sort(ends.reshape(*ends.shape[:-1], 2, ends.shape[-1] // 2), axis=-2).reshape(ends.shape)


def limits(axes: Axes, known: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the smallest and the largest value of an array, None where there is no such end."""
    low, high = (None if text is None else value_of(text, known) for text in (axes.low, axes.high))
    return low, high


def within(values: npt.NDArray[Any], axes: Axes, known: Mapping[str, Any], bits: int) -> npt.NDArray[Any]:
    """
    Return reals moved into the domain of an argument, with as many significant bits as they have room for.

    Values are folded at the ends of the domain, so that they still differ. Without a domain they stay as they are.
    """
    low, high = limits(axes, known)
    if axes.positive:
        values, low = np.where(values == 0, 1.0, values), 0.0
    if low is None and high is None:
        return values
    if low is None:
        moved = high - np.abs(values)
    elif high is None:
        moved = low + np.abs(values)
    else:
        moved = folded(values, low, high)
    rounded = _rounded(np.round, moved, bits)
    if low is not None:
        rounded = np.where(rounded < low, _rounded(np.ceil, moved, bits), rounded)
    if high is not None:
        rounded = np.where(rounded > high, _rounded(np.floor, moved, bits), rounded)
    if axes.positive:  # 0 is where the fold begins
        least = 2.0**-bits if high is None else _rounded(np.floor, np.asarray(high / 2.0), bits)
        rounded = np.where(rounded > 0, rounded, least)
    return np.asarray(rounded, dtype=np.float64)


def folded(values: npt.NDArray[Any], low: float, high: float) -> npt.NDArray[Any]:
    """Return reals from `low` to `high`: 0 is at `low`, and larger numbers go to and fro between the two."""
    width = high - low
    return low + (np.abs((np.abs(values) + width) % (2 * width) - width) if width else np.zeros(values.shape))


def _rounded(how: Any, values: npt.NDArray[Any], bits: int) -> npt.NDArray[Any]:
    """Return values with so many significant bits, rounded to the nearest number, up or down."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(how(mantissa * 2.0**bits), exponent - bits))


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, text, "eval")
