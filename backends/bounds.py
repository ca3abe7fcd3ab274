"""
Error bounds: arrays of (value, bound). Run on them, a definition says how far a correct implementation may be off.

Every operation adds the first-order worst case over all reasonable implementations of it. Each accuracy class has its own
namespace, which says how many significand bits float64, float32 and the storage dtype have. A dtype wider than the class allows
does not help. Elementary functions are correctly rounded and sums run in a fixed order, so tolerances are the same on every
machine. They need python-flint, unless a subclass computes them in another way (`elementary`, `of_matrices`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .numbers import (
    Array,
    Label,
    NumberSystem,
    Part,
    Undecided,
    angles,
    float32,
    float64,
    frequencies,
    matrices,
    pulled_through_cayley,
    storage,
)  # fmt: skip
from .roundoffs import CLASSES, ROUNDOFFS, Accuracy, growth


class Bounds(NumberSystem):
    """The namespace of (value, bound) for one accuracy class."""

    __name__ = "posref.backends.bounds"

    def __init__(self, accuracy: Accuracy) -> None:
        self.accuracy = accuracy
        self.bits = {float64: accuracy.float64, float32: accuracy.float32, storage: accuracy.storage}
        self.bits[matrices] = min(accuracy.float64, max(accuracy.float32, 24))
        self.bits[frequencies] = accuracy.power or accuracy.float64
        self.bits[angles] = accuracy.angle or accuracy.float64

    @property
    def pi(self) -> Array:
        """Pi, rounded once to the class's float64, with that rounding as its bound."""
        return Array((np.asarray(np.pi), np.asarray(self._unit(float64) * np.pi)), float64, self)

    # ---- rounding -----------------------------------------------------------------------------------------------------
    def _unit(self, dtype: Label) -> float:
        return 2.0 ** -self.bits[dtype]

    def _fits(self, value: Part, dtype: Label) -> Part:
        """Return where `value` is representable in `dtype`, with this class's number of bits."""
        fits = np.isfinite(value)
        return np.asarray(fits if self.bits[dtype] >= 53 else fits & (odd(value) < 2.0 ** self.bits[dtype]))

    def _rounded(self, value: Part, error: Part, exact: Callable[[Any], Part], dtype: Label, units: float = 1) -> Array:
        """
        Return (value, error) after an operation. No error is added where the operation was exact and the result fits.

        `exact` takes an index and says which of the selected elements were exact. It is only called where the error is still 0.
        """
        value, error = np.asarray(value, dtype=np.float64), np.asarray(error, dtype=np.float64)
        added = units * self._unit(dtype) * (np.abs(value) + error) + self.accuracy.floor
        with np.errstate(invalid="ignore"):
            total = np.asarray(error + added)
        none = np.broadcast_to(error == 0, total.shape)
        if np.any(none) and (units * self._unit(dtype) or self.accuracy.floor):
            at: Any = ... if np.all(none) else none
            there = value[at]
            free = exact(at) & self._fits(there, dtype) & ((there == 0) | (np.abs(there) >= self.accuracy.normal))
            total[at] = np.where(free, 0.0, total[at])
        return Array((value, total), dtype, self)

    def real(self, values: Part, dtype: Label) -> Array:
        value = np.asarray(values, dtype=np.float64)
        exact = np.isinf(value) | (value == np.asarray(values))
        fits = self._fits(value, dtype) | np.isinf(value)
        error = np.where(fits & exact, 0.0, self._unit(dtype) * np.where(np.isinf(value), 0.0, np.abs(value)))
        return Array((value, error), dtype, self)

    def astype(self, x: Array, dtype: Label) -> Array:
        if x.dtype is dtype:
            return x
        if dtype.kind != "real floating":
            if dtype.kind == x.dtype.kind:
                return Array(x.parts, dtype, self)
            if x.dtype.kind == "bool":
                return Array((x.parts[0].astype(np.int64),), dtype, self)
            whole = self.floor(x)
            return Array((whole.parts[0].astype(np.int64),), dtype, self)
        if x.dtype.kind != "real floating":
            return self.real(x.parts[0].astype(np.int64), dtype)
        if self.bits[dtype] >= self.bits[x.dtype]:
            return Array(x.parts, dtype, self)
        value, error = x.parts
        return self._rounded(value, error, lambda at: np.ones(value[at].shape, dtype=bool), dtype)

    # ---- arithmetic ----------------------------------------------------------------------------------------------------
    def real_add(self, a: Array, b: Array, dtype: Label) -> Array:
        (p, e), (q, f) = a.parts, b.parts
        with np.errstate(invalid="ignore"):
            total = np.asarray(p + q)
        p, q = np.broadcast_arrays(p, q)

        def exact(at: Any) -> Part:
            a, b, both = p[at], q[at], total[at]
            with np.errstate(invalid="ignore"):
                return np.asarray((a - (both - (both - a))) + (b - (both - a)) == 0)  # Knuth's exact remainder

        return self._rounded(total, e + f, exact, dtype, ROUNDOFFS["add"].units)

    def real_multiply(self, a: Array, b: Array, dtype: Label) -> Array:
        (p, e), (q, f) = a.parts, b.parts
        error = np.abs(p) * f + np.abs(q) * e + e * f
        p, q = np.broadcast_arrays(p, q)
        return self._rounded(p * q, error, lambda at: _exact_product(p[at], q[at]), dtype, ROUNDOFFS["multiply"].units)

    def real_divide(self, a: Array, b: Array, dtype: Label) -> Array:
        (p, e), (q, f) = a.parts, b.parts
        room = np.abs(q) - f
        if np.any(room <= 0):
            msg = "division by a number that may be zero"
            raise Undecided(msg)
        quotient = np.asarray(p / q)
        exact = np.asarray(_exact_product(quotient, q) & (quotient * q == p))
        return self._rounded(quotient, (e + np.abs(quotient) * f) / room, exact.__getitem__, dtype, ROUNDOFFS["divide"].units)

    def real_pow(self, a: Array, b: Array, dtype: Label) -> Array:
        x, y = np.broadcast_arrays(a.parts[0], b.parts[0])
        e, f = np.broadcast_arrays(a.parts[1], b.parts[1])
        zero = (x == 0) & (e == 0) & (y - f > 0)  # and an exponent that is surely positive
        if np.any((x - e <= 0) & ~zero):
            msg = "power of a number that may not be positive"
            raise Undecided(msg)
        x = np.where(zero, 1.0, x)
        log = self.elementary("log", x)
        power = self.elementary("pow", x, y)
        change = np.abs(y) * e / (x - e) + np.abs(log) * f
        own = ROUNDOFFS["pow"].units + ROUNDOFFS["pow, times |y ln x|"].units * np.abs(y * log)
        unit = max(self._unit(dtype), self._unit(frequencies))
        bound = power * (growth(change) + unit * own) + self.accuracy.floor
        exact = zero | ((y == 0) & (f == 0))
        return Array((np.where(zero, 0.0, power), np.where(exact, 0.0, bound)), dtype, self)

    def real_minimum(self, a: Array, b: Array, dtype: Label) -> Array:
        return self._extreme(a, b, dtype, np.minimum)

    def real_maximum(self, a: Array, b: Array, dtype: Label) -> Array:
        return self._extreme(a, b, dtype, np.maximum)

    def _extreme(self, a: Array, b: Array, dtype: Label, choose: Callable[..., Part]) -> Array:
        (p, e), (q, f) = a.parts, b.parts
        value = choose(p, q)
        with np.errstate(invalid="ignore"):
            apart = np.abs(p - q) > e + f
        error = np.where(apart, np.where(value == p, e, f), np.maximum(e, f))
        return Array((np.asarray(value), error), dtype, self)

    def real_compare(self, name: str, a: Array, b: Array) -> Part:
        (p, e), (q, f) = a.parts, b.parts
        known = (np.abs(p - q) > e + f) | ((e == 0) & (f == 0))
        if not np.all(known):
            msg = f"{name} within the error bounds"
            raise Undecided(msg)
        return np.asarray(getattr(np, name)(p, q))

    def surely_greater(self, a: Array, b: Array) -> Part:
        """Return where a > b for all errors within the bounds."""
        (p, e), (q, f) = a.parts, b.parts
        with np.errstate(invalid="ignore"):
            return np.asarray(p - q > e + f)

    def between(self, low: Part, high: Part, dtype: Label) -> Array:
        """Return the middle of two NumPy arrays, with half their distance as its bound."""
        return Array((np.asarray((low + high) / 2), np.asarray((high - low) / 2)), dtype, self)

    def _step(self, x: Array, step: Callable[[Part], Part]) -> Array:
        value, error = x.parts
        low, high = step(value - error), step(value + error)
        if np.any(low != high):
            msg = "rounding to an integer within the error bounds"
            raise Undecided(msg)
        return Array((np.asarray(low), np.zeros_like(error)), x.dtype, self)

    def floor(self, x: Array) -> Array:
        """Return the largest integer not above x. Raise `Undecided` if the bound allows two."""
        return self._step(x, np.floor)

    def ceil(self, x: Array) -> Array:
        """Return the smallest integer not below x. Raise `Undecided` if the bound allows two."""
        return self._step(x, np.ceil)

    def sqrt(self, x: Array) -> Array:
        """Return the square root."""
        value, error = x.parts
        if np.any(value - error < 0):
            msg = "square root of a number that may be negative"
            raise Undecided(msg)
        root = np.sqrt(value)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.where(error == 0, 0.0, error / (root + np.sqrt(value - error)))
        exact = np.asarray(_exact_product(root, root) & (root * root == value))
        return self._rounded(root, spread, exact.__getitem__, x.dtype, ROUNDOFFS["sqrt"].units)

    # ---- elementary functions, and how their values are found -------------------------------------------------------------
    def elementary(self, name: str, *parts: Part) -> Part:
        """Return an elementary function of NumPy float64, correctly rounded."""
        from . import exact  # needs python-flint

        return exact.elementary(name, *parts)

    def of_matrices(self, name: str, *parts: Part) -> Part:
        """Return a function of the matrices in the last two axes of NumPy float64, nearly correctly rounded."""
        from . import exact

        return exact.of_matrices(name, *parts)

    def exp(self, x: Array) -> Array:
        """Return e to the x, exact only at 0."""
        value, error = x.parts
        power = self.elementary("exp", value)
        with np.errstate(invalid="ignore"):  # the power underflowed to zero and its exponent is unbounded
            grown = np.where(power == 0, 0.0, power * (growth(error) + ROUNDOFFS["exp"].units * self._unit(x.dtype)))
        bound = grown + self.accuracy.floor
        return Array((power, np.where((value == 0) & (error == 0), 0.0, bound)), x.dtype, self)

    def log(self, x: Array) -> Array:
        """Return the natural logarithm, exact only at 1."""
        value, error = x.parts
        if np.any(value - error <= 0):
            msg = "logarithm of a number that may not be positive"
            raise Undecided(msg)
        log = self.elementary("log", value)
        own = ROUNDOFFS["log"].units * self._unit(x.dtype) * np.abs(log)
        bound = error / (value - error) + own + self.accuracy.floor
        return Array((log, np.where((value == 1) & (error == 0), 0.0, bound)), x.dtype, self)

    def log1p(self, x: Array) -> Array:
        """Return the natural logarithm of 1 + x, exact only at 0. Within the error its slope is at most 1/(1 + x - error)."""
        value, error = x.parts
        if np.any(1 + value - error <= 0):
            msg = "logarithm of a number that may not be positive"
            raise Undecided(msg)
        log = self.elementary("log1p", value)
        own = ROUNDOFFS["log1p"].units * self._unit(x.dtype) * np.abs(log)
        bound = error / (1 + value - error) + own + self.accuracy.floor
        return Array((log, np.where((value == 0) & (error == 0), 0.0, bound)), x.dtype, self)

    def sin(self, x: Array) -> Array:
        """Return the sine in the class's working dtype, exact only at 0."""
        return self._wave(x, "sin", ROUNDOFFS["sin"].units)

    def cos(self, x: Array) -> Array:
        """Return the cosine in the class's working dtype, exact only at 0."""
        return self._wave(x, "cos", ROUNDOFFS["cos"].units)

    def sin_pi(self, x: Array) -> Array:
        """Return the sine of pi x. Its bound also covers code that multiplies by pi first."""
        return self._of_half_turns(x, "sin")

    def cos_pi(self, x: Array) -> Array:
        """Return the cosine of pi x. Its bound also covers code that multiplies by pi first."""
        return self._of_half_turns(x, "cos")

    def _of_half_turns(self, x: Array, name: str) -> Array:
        _, bound = self._wave(self.real_multiply(x, self.pi, x.dtype), name, ROUNDOFFS[name].units).parts
        return Array((self.elementary(f"{name}_pi", x.parts[0]), bound), float32, self)

    def constant_sin(self, x: Array) -> Array:
        """Return the sine of one of the definition's constants (not of a position's angle), in the dtype of `x`."""
        value, error = x.parts
        wave = self.elementary("sin", value)
        bound = np.minimum(error, 2.0) + ROUNDOFFS["sin"].units * self._unit(x.dtype) * np.abs(wave) + self.accuracy.floor
        return Array((wave, np.where((value == 0) & (error == 0), 0.0, bound)), x.dtype, self)

    def _wave(self, x: Array, name: str, units: float) -> Array:
        value, error = x.parts
        unit, wave = self._unit(float32), self.elementary(name, value)
        bound = np.minimum(error, 2.0) + units * unit * np.abs(wave) + self.accuracy.floor
        if self.bits[float64 if x.dtype is angles else x.dtype] > self.bits[float32]:
            bound = bound + ROUNDOFFS["reduction, times min(|angle|, pi)"].units * unit * np.minimum(np.abs(value), np.pi)
        return Array((wave, np.where((value == 0) & (error == 0), 0.0, bound)), float32, self)

    # ---- formulas ----------------------------------------------------------------------------------------------------------
    def either(self, a: Array, b: Array) -> Array:
        """Return the first of two formulas for the same numbers, with the larger of both finite bounds."""
        (value, error), other = a.parts, b.parts[1]
        return Array((value, np.where(np.isfinite(other), np.maximum(error, other), error)), a.dtype, self)

    # ---- reductions ------------------------------------------------------------------------------------------------------
    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        values, errors = (np.moveaxis(part, axis, 0) for part in x.parts)
        total, error, size = (np.zeros(values.shape[1:]) for _ in range(3))
        for value, bound in zip(values, errors, strict=True):  # fixed order
            total, error, size = total + value, error + bound, size + np.abs(value)
        terms = np.count_nonzero((values != 0) | (errors != 0), axis=0)
        units = ROUNDOFFS["sum, times the terms' sum"].units * terms * self._unit(x.dtype)
        error = np.where(terms > 1, error + units * (size + error) + self.accuracy.floor, error)
        if keepdims:
            total, error = np.expand_dims(total, axis), np.expand_dims(error, axis)
        return Array((np.asarray(total), np.asarray(error)), x.dtype, self)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product. Every product counts as rounded, because code may scale an operand first."""
        products = self.multiply(a[..., :, :, None], b[..., None, :, :])
        value, error = products.parts
        several = np.count_nonzero(value, axis=-2, keepdims=True) > 1
        rounded = np.where((error == 0) & (value != 0) & several, self._unit(products.dtype) * np.abs(value), error)
        return self.sum(Array((value, rounded), products.dtype, self), axis=-2)

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return the largest along `axis`."""
        value, error = x.parts
        largest = np.max(value, axis=axis, keepdims=keepdims)
        finite = np.where(np.isinf(value), 0.0, error)
        return Array((np.asarray(largest), np.asarray(np.max(finite, axis=axis, keepdims=keepdims))), x.dtype, self)

    # ---- functions of whole matrices, by norms --------------------------------------------------------------------------
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


class Sensitivity(Bounds):
    """
    The namespace of (value, how far it moves if every sine and cosine is off by `SMALL`). All other operations are exact.

    `SMALL` is so small that products of two such errors vanish. So bounds grow linearly; divided by `SMALL` they give the
    change for each unit of error.
    """

    SMALL = 2.0**-100

    def __init__(self) -> None:
        super().__init__(Accuracy(53, 53, 53, 0.0))

    def _unit(self, dtype: Label) -> float:
        return 0.0

    def _wave(self, x: Array, name: str, units: float) -> Array:
        wave, bound = super()._wave(x, name, units).parts
        return Array((wave, bound + self.SMALL), float32, self)

    def skew_exponential(self, x: Array) -> Array:
        """Return the exponentials of skew-symmetric matrices. Their entries get the same error as sines and cosines."""
        found, bound = super().skew_exponential(x).parts
        return Array((found, bound + self.SMALL), float32, self)

    def skew_exponential_adjoint(self, x: Array, g: Array) -> Array:
        """Return the cotangents of the exponentials, carried back, with the error of both exponentials."""
        found, bound = super().skew_exponential_adjoint(x, g).parts
        return Array((found, bound + 2 * g.shape[-1] * self.SMALL * norm(g.parts[0])), float32, self)


def bounds(name: str) -> Bounds:
    """Return the namespace of the accuracy class called `name`."""
    return Bounds(CLASSES[name])


def rounded_up(error: Part) -> Part:
    """Return bounds as float32, rounded up."""
    with np.errstate(over="ignore"):
        nearest = error.astype(np.float32)
        return np.where(nearest.astype(np.float64) < error, np.nextafter(nearest, np.float32(np.inf)), nearest)


def _exact_product(a: Part, b: Part) -> Part:
    """
    Return where the float64 product of `a` and `b` is exact: where the product of their odd significands is below 2**53.

    That product is itself computed in float64. Below 2**53 it is exact, and a larger one is never rounded to below 2**53.
    """
    return np.asarray(odd(a) * odd(b) < 2.0**53)


def odd(x: Part) -> Part:
    """Return the significand of each float64 as an odd integer; 0 for 0, infinities and NaN."""
    bits = np.ascontiguousarray(x, dtype=np.float64).view(np.int64).reshape(np.shape(x))
    exponent, whole = bits & (0x7FF << 52), bits & ((1 << 52) - 1)
    whole = np.where(exponent == 0, whole, whole | (1 << 52)) * (exponent != 0x7FF << 52)
    return np.asarray(whole.astype(np.float64) / np.maximum(whole & -whole, 1))  # division by a power of two, exact


def norm(matrices: Part) -> Part:
    """Return the Frobenius norms of matrices, keeping both axes with size 1. Sums run in a fixed order."""
    total = np.zeros((*matrices.shape[:-2], 1, 1))
    for index in np.ndindex(matrices.shape[-2:]):
        total = total + matrices[(..., *index)][..., None, None] ** 2
    return np.sqrt(total)
