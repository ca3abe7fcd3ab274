"""
Error bounds of plain code in half precision: each operation of an array library rounds its result to half precision once.

Unlike in class "low", a sum, a matrix product or an elementary function is one operation: libraries compute it in float32.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from .bounds import Bounds
from .numbers import Array, Label, float32, matrices, storage
from .roundoffs import CLASSES


class Mixed(Bounds):
    """The namespace of (value, bound, waived) for code in `dtype`, "bfloat16" or "float16", whose sums are in float32."""

    def __init__(self, dtype: str) -> None:
        super().__init__(CLASSES[f"low-{dtype}"])
        self._wider = copy(self)
        self._wider.bits = {**self.bits, float32: 24, matrices: 24, storage: 24}
        self._wider._wider = self._wider  # operations that it composes of others stay in it

    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return a sum in float32, rounded once."""
        return self._once(super(Mixed, self._wider).sum(x, axis=axis, keepdims=keepdims))

    def matmul(self, a: Array, b: Array) -> Array:
        """
        Return a matrix product in float32, rounded once.

        Each of several products counts as rounded to half precision before, because code may scale an operand first.
        """
        value, error, waived = super(Mixed, self._wider).matmul(a, b).parts
        p, q = (np.abs(x.parts[0]) for x in (a, b))
        with np.errstate(all="ignore"):
            sizes, counts = p @ q, np.sign(p) @ np.sign(q)
        first = np.where(counts > 1, self._unit(self.result_type(a.dtype, b.dtype)) * sizes, 0.0)
        return self._once(self.array(value, error + first, self.result_type(a.dtype, b.dtype), waived))

    def exp(self, x: Array) -> Array:
        """Return e to the x, computed in float32 and rounded once."""
        return self._once(super(Mixed, self._wider).exp(x))

    def log(self, x: Array) -> Array:
        """Return the natural logarithm, computed in float32 and rounded once."""
        return self._once(super(Mixed, self._wider).log(x))

    def tanh(self, x: Array) -> Array:
        """Return the hyperbolic tangent, computed in float32 and rounded once."""
        return self._once(super(Mixed, self._wider).tanh(x))

    def log1p(self, x: Array) -> Array:
        """Return the natural logarithm of 1 + x, computed in float32 and rounded once."""
        return self._once(super(Mixed, self._wider).log1p(x))

    def real_pow(self, a: Array, b: Array, dtype: Label) -> Array:
        """Return a power, computed in float32 and rounded once."""
        return self._once(super(Mixed, self._wider).real_pow(a, b, dtype))

    def _wave(self, x: Array, name: str, units: float) -> Array:
        return self._once(super(Mixed, self._wider)._wave(x, name, units))

    def _once(self, x: Array) -> Array:
        """Return a result of wider arithmetic after its rounding."""
        value, error, waived = x.parts
        return self._rounded(value, error, waived, lambda at: np.ones(value[at].shape, dtype=bool), x.dtype)
