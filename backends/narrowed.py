"""
The definitions in float64, with what some of their steps compute held in half precision.

A step is an expression in a definition that computes reals. Code that keeps this number in half precision gives these values.
A sum in half precision is a step of its own: every addition rounds.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from functools import cache, partialmethod
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from .live import FromNumPy, live
from .numbers import Array, Label, NumberSystem, Part, float32, float64
from .rounding import BITS, round_to, saturated

ELEMENTARY = frozenset({"sqrt", "exp", "log", "log1p", "tanh", "sin", "cos", "sin_pi", "cos_pi", "floor", "ceil"})
BELOW = (["posref", "backends"], ["functools"], [""])  # packages of this file, and of what calls it from a definition


class Step(NamedTuple):
    """An expression of a definition that computes reals; with `adds`, its sum's additions."""

    file: str
    start: tuple[int, int]  # line, from 1, and column
    end: tuple[int, int]
    adds: bool = False

    @property
    def source(self) -> str:
        """The expression."""
        lines = [linecache.getline(self.file, n) for n in range(self.start[0], self.end[0] + 1)]
        lines[-1] = lines[-1].encode()[: self.end[1]].decode()
        lines[0] = lines[0].encode()[self.start[1] :].decode()
        return " ".join("".join(lines).split())

    @property
    def in_words(self) -> str:
        """The expression and its file."""
        return f"{'each addition of ' * self.adds}`{self.source}` ({Path(self.file).name})"

    def __str__(self) -> str:
        """Return the name of the file and the expression."""
        return f"{Path(self.file).name}: {self.source}{', added one by one' * self.adds}"


@cache
def _expressions(code: CodeType) -> list[Step]:
    """Return the expression of every instruction."""
    places = ((line or 1, last or 1, column or 0, end or 0) for line, last, column, end in code.co_positions())
    return [Step(code.co_filename, (line, column), (last, end)) for line, last, column, end in places]


class Narrowed(NumberSystem):
    """The namespace of float64 in which the steps of `rounded` round to `dtype`. `steps` has those that ran, in their order."""

    __name__ = "narrowed"

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.rounded: frozenset[Step] = frozenset()
        self.steps: dict[Step, None] = {}

    def _here(self) -> Step | None:
        """Return the expression of a definition that is running."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__package__", "").split(".")[:2] in BELOW:
            frame = frame.f_back
        if frame is None or frame.f_globals.get("__package__", "").split(".")[0] != "posref":
            return None
        return _expressions(frame.f_code)[frame.f_lasti // 2]

    def _adds_narrowly(self) -> bool:
        step = self._here()
        return step is not None and step._replace(adds=True) in self.rounded

    def array(self, value: Any, dtype: Label, *, adds: bool = False) -> Array:
        """Return the result of an operation."""
        step = self._here()
        if step is not None:
            self.steps.setdefault(step)
            if adds:
                self.steps.setdefault(step._replace(adds=True))
            if step in self.rounded:
                value = round_to(np.asarray(value, dtype=np.float64), self.dtype)
        return Array((np.asarray(value, dtype=np.float64),), dtype, self)

    @property
    def pi(self) -> Array:
        """The number pi."""
        return self.real(np.asarray(np.pi), float64)

    def real(self, values: Part, dtype: Label) -> Array:
        """Return reals from the host."""
        return Array((np.asarray(values, dtype=np.float64),), dtype, self)

    def astype(self, x: Array, dtype: Label) -> Array:
        """Return `x` in another dtype, exactly."""
        return Array((x.parts[0].astype(np.float64 if dtype.kind == "real floating" else np.int64),), dtype, self)

    def _operation(self, function: Callable[..., Part], a: Array, b: Array, dtype: Label) -> Array:
        return self.array(function(a.parts[0], b.parts[0]), dtype)

    real_add, real_multiply = partialmethod(_operation, np.add), partialmethod(_operation, np.multiply)
    real_minimum, real_maximum = partialmethod(_operation, np.minimum), partialmethod(_operation, np.maximum)
    real_divide, real_pow = partialmethod(_operation, np.divide), partialmethod(_operation, np.power)

    def real_compare(self, name: str, a: Array, b: Array) -> Part:
        """Compare reals."""
        return np.asarray(getattr(np, name)(a.parts[0], b.parts[0]))

    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return the sum along `axis`."""
        if self._adds_narrowly():
            terms = np.moveaxis(x.parts[0], axis, 0)
            total = np.zeros(terms.shape[1:])
            for term in terms:
                total = np.asarray(round_to(total + term, self.dtype), dtype=np.float64)
            return self.array(np.expand_dims(total, axis) if keepdims else total, x.dtype)
        return self.array(np.sum(x.parts[0], axis=axis, keepdims=keepdims), x.dtype, adds=x.shape[axis] > 1)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product of the last two axes."""
        dtype = self.result_type(a.dtype, b.dtype)
        if self._adds_narrowly():
            return super().matmul(a, b)
        return self.array(a.parts[0] @ b.parts[0], dtype, adds=a.shape[-1] > 1)

    def real_cumulative_sum(self, x: Array, axis: int) -> Array:
        """Return the cumulative sum along `axis`."""
        if not self._adds_narrowly():
            return self.array(np.cumsum(x.parts[0], axis=axis), x.dtype, adds=x.shape[axis] > 1)
        terms = np.moveaxis(np.array(x.parts[0]), axis, 0)
        for n in range(1, len(terms)):
            terms[n] = round_to(terms[n - 1] + terms[n], self.dtype)
        return self.array(np.moveaxis(terms, 0, axis), x.dtype)

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return the maximum along `axis`."""
        return self.array(np.max(x.parts[0], axis=axis, keepdims=keepdims), x.dtype)

    def _elementary(self, name: str, dtype: Label, x: Array) -> Array:
        return self.array(_exactly().elementary(name, x.parts[0]), dtype)

    def __getattr__(self, name: str) -> Callable[[Array], Array]:
        """Return an elementary function."""
        if name not in ELEMENTARY:
            raise AttributeError(name)
        return lambda x: self._elementary(name, float32 if name[:3] in ("sin", "cos") else x.dtype, x)

    def constant_sin(self, x: Array) -> Array:
        """Return the sine of a constant."""
        return self._elementary("sin", x.dtype, x)

    def saturated(self, x: Array, bits: int, least: int, largest: float, dtype: Label) -> Array:
        """Return `x` rounded to few bits."""
        return self.real(saturated(x.parts[0], bits, least, largest), dtype)

    def cayley(self, x: Array, found: Array) -> Array:
        """Return a Cayley transform as the definition found it."""
        return found

    def skew_exponential(self, x: Array) -> Array:
        """Return the exponentials of skew-symmetric matrices."""
        return self.array(_exactly().of_matrices("exponential", x.parts[0]), float32)

    def either(self, a: Array, b: Callable[[], Array]) -> Array:
        """Return the first of two formulas for the same numbers."""
        return a


def towards_zero(x: Part, dtype: str) -> Part:
    """Return numbers rounded towards zero to the bits of `dtype`, whatever their exponents."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.trunc(np.ldexp(mantissa, BITS[dtype])), exponent - BITS[dtype]))


def _exactly() -> FromNumPy:
    return live("float64")
