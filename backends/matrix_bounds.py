"""Error bounds, by norms, of the exponential and the Cayley transform of skew-symmetric matrices."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from .numbers import Array, Label, NumberSystem, Part, float32, pulled_through_cayley
from .roundoffs import ROUNDOFFS, Accuracy, growth


class MatrixBounds(NumberSystem):
    """The part of the namespace of (value, bound) for functions of whole matrices."""

    accuracy: Accuracy

    @abstractmethod
    def _unit(self, dtype: Label) -> float:
        """Return the unit roundoff of a dtype in this class."""

    @abstractmethod
    def of_matrices(self, name: str, *parts: Part) -> Part:
        """Return a function of the matrices in the last two axes of NumPy float64."""

    def cayley(self, x: Array, found: Array) -> Array:
        """
        Return the Cayley transforms `found` of skew-symmetric matrices, with the bound of any solve or inverse.

        They are orthogonal, and the norm of the inverse of I + S is at most 1. So an error E of S moves them by at most 2 |E|.
        """
        value, error = found.parts
        off = np.minimum(2 * norm(x.parts[1]), 2.0) + self._solved(x)
        return Array((value, np.maximum(error, np.broadcast_to(off, value.shape))), found.dtype, self)

    def cayley_adjoint(self, u: Array, x: Array, g: Array) -> Array:
        """Return the cotangents `g` of the Cayley transforms `u`, carried back to `x`. Their norm is at most 2 |g|."""
        found, error = pulled_through_cayley(u, g).parts
        own = 3 * self._solved(x) * (norm(g.parts[0]) + norm(g.parts[1]))
        return Array((found, np.maximum(error, np.broadcast_to(own, found.shape))), g.dtype, self)

    def _solved(self, x: Array) -> Part:
        """Return how far (I - S)(I + S)^-1 may be off if computed by elimination. |S| is at most |S|_F / sqrt(2)."""
        size = norm(x.parts[0]) + norm(x.parts[1])
        grown = x.shape[-1] ** 2 * (1 + size**2 / 2) ** 1.5
        own = ROUNDOFFS["Cayley transform, times n^2 (1 + |S|^2)^(3/2)"].units * self._unit(x.dtype) * grown
        return np.where(size == 0, 0.0, np.minimum(own, 2.0) + self.accuracy.floor)

    def skew_exponential(self, x: Array) -> Array:
        """
        Return the exponentials of skew-symmetric matrices in the class's working dtype, exact only at 0.

        They are orthogonal. So a skew-symmetric error E of a matrix moves its exponential by at most |E|.
        """
        value, error = x.parts
        size, off, n = norm(value), norm(error), x.shape[-1]
        products = n * (n + 16) if self._unit(x.dtype) == 2.0**-53 else n**2
        own = ROUNDOFFS["skew exponential, times n^2 (1 + 2 |A|)"].units * self._growing(x.dtype, products, size)
        bound = np.where((size == 0) & (off == 0), 0.0, np.minimum(off, 2.0) + growth(own) + self.accuracy.floor)
        found = self.of_matrices("exponential", value)
        return self.astype(Array((found, np.broadcast_to(bound, found.shape)), x.dtype, self), float32)

    def skew_exponential_adjoint(self, x: Array, g: Array) -> Array:
        """Return the cotangents `g` of the exponentials, carried back to skew-symmetric `x`. Their norm is at most |g|."""
        (value, error), (along, across) = x.parts, g.parts
        own = ROUNDOFFS["its derivative along G, times n^2 (1 + 2 |A|) |G|"].units
        moved = np.minimum(norm(error), 2.0) + growth(own * self._growing(x.dtype, x.shape[-1] ** 2, norm(value)))
        bound = norm(across) + (norm(along) + norm(across)) * moved + self.accuracy.floor
        found = self.of_matrices("derivative_of_exponential", -value, along)
        return self.astype(Array((found, np.broadcast_to(bound, found.shape)), x.dtype, self), float32)

    def _growing(self, dtype: Label, products: int, size: Part) -> Part:
        """Return how the rounding error of an exponential grows with a matrix's width (`products`) and its norm `size`."""
        return np.asarray(np.minimum(self._unit(dtype) * products * (1 + 2 * size), 4.0))  # never this large


def norm(matrices: Part) -> Part:
    """Return the Frobenius norms of matrices, keeping both axes with size 1. Sums run in a fixed order."""
    total = np.zeros((*matrices.shape[:-2], 1, 1))
    for index in np.ndindex(matrices.shape[-2:]):
        total = total + matrices[(..., *index)][..., None, None] ** 2
    return np.sqrt(total)
