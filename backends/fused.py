"""
Error bounds of fused kernels in half precision: tensors are stored in half precision, and arithmetic is in float32.

What a kernel stores in half precision is rounded once: its results, tables of cosines and sines, both factors of a matrix
product (for example probabilities, and rotated queries and keys), and scalars such as 1/sqrt(D). Sums are in float32.
"""

from __future__ import annotations

import numpy as np

from .bounds import Bounds, Exactness
from .numbers import Array, Label, Part, float32, storage
from .roundoffs import CLASSES, Accuracy


class Fused(Bounds):
    """The namespace of (value, bound, waived) for a kernel whose tensors are in `dtype`, "bfloat16" or "float16"."""

    holds_factors = True

    def __init__(self, dtype: str) -> None:
        narrow, wide = CLASSES[f"low-{dtype}"], CLASSES["angle32"]
        super().__init__(wide._replace(storage=narrow.storage))
        self._of_arithmetic, self._of_tensors = self.accuracy, narrow

    def held(self, x: Array) -> Array:
        """Return `x` after one rounding to half precision, in its own dtype."""
        return Array(super().astype(x, storage).parts, x.dtype, self)

    def real(self, values: Part, dtype: Label) -> Array:
        """Return reals. A scalar (0-d) may be stored in half precision."""
        number = super().real(values, dtype)
        return self.held(number) if dtype is float32 and not number.ndim else number

    def real_divide(self, a: Array, b: Array, dtype: Label) -> Array:
        """Return a/b. The inverse of a scalar divisor (0-d) may be stored in half precision."""
        if b.ndim or b.dtype is not float32 or self._is_power_of_two(b):
            return super().real_divide(a, b, dtype)
        value, error, waived = b.parts
        return super().real_divide(a, self.array(value, error + self._unit(storage) * np.abs(value), dtype, waived), dtype)

    def _is_power_of_two(self, x: Array) -> bool:
        value, error, _ = x.parts
        return bool(error == 0 and np.abs(np.frexp(value)[0]) == 0.5)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product of factors that are stored in half precision."""
        return super().matmul(self.held(a), self.held(b))

    def _wave(self, x: Array, name: str, units: float) -> Array:
        return self.held(super()._wave(x, name, units))

    def _rounded(
        self, value: Part, error: Part, waived: Part | float, exact: Exactness, dtype: Label, units: float = 1
    ) -> Array:  # fmt: skip
        """Return a result after an operation, with the exponent range of half precision where it stores there."""
        self.accuracy = self._of_tensors if dtype is storage else self._of_arithmetic
        result = super()._rounded(value, error, waived, exact, dtype, units)
        self.accuracy = self._of_arithmetic
        return result


class Scalars(Bounds):
    """The namespace of (value, how far it moves if scalars have a relative error of `unit`). All other operations are exact."""

    def __init__(self, unit: float) -> None:
        super().__init__(Accuracy(53, 53, 53, 0.0))
        self._of_scalars = unit
        self.formulas = False  # they move with other scalars

    def _unit(self, dtype: Label) -> float:
        return 0.0

    def real(self, values: Part, dtype: Label) -> Array:
        """Return reals. A 0-d one is a scalar and gets the error."""
        number = super().real(values, dtype)
        return self._off(number) if dtype is float32 and not number.ndim else number

    def real_divide(self, a: Array, b: Array, dtype: Label) -> Array:
        """Return a/b. A 0-d divisor is a scalar and gets the error."""
        return super().real_divide(a, b if b.ndim or b.dtype is not float32 else self._off(b), dtype)

    def _off(self, x: Array) -> Array:
        value, error, waived = x.parts
        moved = np.where(np.abs(np.frexp(value)[0]) == 0.5, error, np.maximum(error, self._of_scalars * np.abs(value)))
        return self.array(value, moved, x.dtype, waived)
