"""
Error bounds: arrays of (value, bound). On them a definition says how far an honest implementation may stray from the truth.

Every operation adds the first-order worst case of any reasonable implementation of it. Each accuracy class has its own
namespace, which says how many significand bits float64, float32 and storage have; a dtype wider than the class allows does not
help. Values come from balls and sums run in a fixed order, so that tolerances are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import arb, arb_mat

from .exact import by_matrices, derivative_of_exponential, nearest_float64, precision, round_to_float64
from .numbers import Array, Label, NumberSystem, Part, Undecided, float32, float64, matrices, storage
from .roundoffs import CLASSES, ROUNDOFFS, Accuracy


class Bounds(NumberSystem):
    """The namespace of (value, bound) for one accuracy class."""

    __name__ = "posref.backends.bounds"

    def __init__(self, accuracy: Accuracy) -> None:
        self.accuracy = accuracy
        self.bits = {float64: accuracy.float64, float32: accuracy.float32, storage: accuracy.storage}
        self.bits[matrices] = min(accuracy.float64, max(accuracy.float32, 24))

    @property
    def pi(self) -> Array:
        """Pi, rounded once to the class's float64. It is never exact."""
        return Array((np.asarray(np.pi), np.asarray(self._unit(float64) * np.pi)), float64, self)

    # ---- rounding -----------------------------------------------------------------------------------------------------
    def _unit(self, dtype: Label) -> float:
        return 2.0 ** -self.bits[dtype]

    def _fits(self, value: Part, dtype: Label) -> Part:
        """Return where `value` is representable in `dtype`, as this class has it."""
        bits = self.bits[dtype]
        mantissa, _ = np.frexp(value)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.ldexp(mantissa, bits) % 1 == 0)

    def _rounded(self, value: Part, error: Part, exact: Part, dtype: Label, units: float = 1) -> Array:
        """Return (value, error) after an operation; no error is added where it was exact and the result fits."""
        value, error = np.asarray(value, dtype=np.float64), np.asarray(error, dtype=np.float64)
        free = exact & (error == 0) & self._fits(value, dtype) & ((value == 0) | (np.abs(value) >= self.accuracy.normal))
        added = units * self._unit(dtype) * (np.abs(value) + error) + self.accuracy.floor
        with np.errstate(invalid="ignore"):
            return Array((value, np.where(free, 0.0, error + added)), dtype, self)

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
            whole = self.floor(x)
            return Array((whole.parts[0].astype(np.int64),), dtype, self)
        if x.dtype.kind != "real floating":
            return self.real(x.parts[0].astype(np.int64), dtype)
        if self.bits[dtype] >= self.bits[x.dtype]:
            return Array(x.parts, dtype, self)
        value, error = x.parts
        return self._rounded(value, error, np.asarray(error == 0), dtype)

    # ---- arithmetic ----------------------------------------------------------------------------------------------------
    def real_add(self, a: Array, b: Array, dtype: Label) -> Array:
        (p, e), (q, f) = a.parts, b.parts
        with np.errstate(invalid="ignore"):
            total = p + q
            lost = (p - (total - (total - p))) + (q - (total - p))  # Knuth's exact remainder
        return self._rounded(total, e + f, np.asarray(lost == 0), dtype, ROUNDOFFS["add"].units)

    def real_multiply(self, a: Array, b: Array, dtype: Label) -> Array:
        (p, e), (q, f) = a.parts, b.parts
        error = np.abs(p) * f + np.abs(q) * e + e * f
        return self._rounded(p * q, error, _exact_product(p, q), dtype, ROUNDOFFS["multiply"].units)

    def real_divide(self, a: Array, b: Array, dtype: Label) -> Array:
        (p, e), (q, f) = a.parts, b.parts
        room = np.abs(q) - f
        if np.any(room <= 0):
            msg = "division by a number that may be zero"
            raise Undecided(msg)
        quotient = p / q
        exact = _exact_product(quotient, q) & (quotient * q == p)
        return self._rounded(quotient, (e + np.abs(quotient) * f) / room, exact, dtype, ROUNDOFFS["divide"].units)

    def real_pow(self, a: Array, b: Array, dtype: Label) -> Array:
        x, y = np.broadcast_arrays(a.parts[0], b.parts[0])
        e, f = np.broadcast_arrays(a.parts[1], b.parts[1])
        if np.any(x - e <= 0):
            msg = "power of a number that may not be positive"
            raise Undecided(msg)
        log = _by_balls(lambda p: p.log(), x)
        power = _by_balls(lambda p, q: p**q, x, y)
        change = np.abs(y) * e / (x - e) + np.abs(log) * f
        own = ROUNDOFFS["pow"].units + ROUNDOFFS["pow, times |y ln x|"].units * np.abs(y * log)
        bound = power * (_growth(change) + self._unit(dtype) * own) + self.accuracy.floor
        return Array((power, np.where((y == 0) & (f == 0), 0.0, bound)), dtype, self)

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
        """Return the largest integer not above, decided."""
        return self._step(x, np.floor)

    def ceil(self, x: Array) -> Array:
        """Return the smallest integer not below, decided."""
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
        return self._rounded(
            root, spread, _exact_product(root, root) & (root * root == value), x.dtype, ROUNDOFFS["sqrt"].units
        )

    # ---- elementary functions --------------------------------------------------------------------------------------------
    def exp(self, x: Array) -> Array:
        """Return e to the x, exact only at 0."""
        value, error = x.parts
        power = _by_balls(lambda p: p.exp(), value)
        with np.errstate(invalid="ignore"):  # a power of zero whose exponent is unbounded
            grown = np.where(power == 0, 0.0, power * (_growth(error) + ROUNDOFFS["exp"].units * self._unit(x.dtype)))
        bound = grown + self.accuracy.floor
        return Array((power, np.where((value == 0) & (error == 0), 0.0, bound)), x.dtype, self)

    def log(self, x: Array) -> Array:
        """Return the natural logarithm, exact only at 1."""
        value, error = x.parts
        if np.any(value - error <= 0):
            msg = "logarithm of a number that may not be positive"
            raise Undecided(msg)
        log = _by_balls(lambda p: p.log(), value)
        own = ROUNDOFFS["log"].units * self._unit(x.dtype) * np.abs(log)
        bound = error / (value - error) + own + self.accuracy.floor
        return Array((log, np.where((value == 1) & (error == 0), 0.0, bound)), x.dtype, self)

    def log1p(self, x: Array) -> Array:
        """Return the natural logarithm of 1 + x, exact only at 0. Within the error its slope is at most 1/(1 + x - error)."""
        value, error = x.parts
        if np.any(1 + value - error <= 0):
            msg = "logarithm of a number that may not be positive"
            raise Undecided(msg)
        log = _by_balls(lambda p: p.log1p(), value)
        own = ROUNDOFFS["log1p"].units * self._unit(x.dtype) * np.abs(log)
        bound = error / (1 + value - error) + own + self.accuracy.floor
        return Array((log, np.where((value == 0) & (error == 0), 0.0, bound)), x.dtype, self)

    def sin(self, x: Array) -> Array:
        """Return the sine in the class's working dtype, exact only at 0."""
        return self._wave(x, lambda p: p.sin(), ROUNDOFFS["sin"].units)

    def cos(self, x: Array) -> Array:
        """Return the cosine in the class's working dtype, exact only at 0."""
        return self._wave(x, lambda p: p.cos(), ROUNDOFFS["cos"].units)

    def constant_sin(self, x: Array) -> Array:
        """Return the sine of one of the definition's constants (not of a position's angle), in the dtype of `x`."""
        value, error = x.parts
        wave = _by_balls(lambda p: p.sin(), value)
        bound = np.minimum(error, 2.0) + ROUNDOFFS["sin"].units * self._unit(x.dtype) * np.abs(wave) + self.accuracy.floor
        return Array((wave, np.where((value == 0) & (error == 0), 0.0, bound)), x.dtype, self)

    def _wave(self, x: Array, function: Callable[[arb], arb], units: float) -> Array:
        value, error = x.parts
        unit, wave = self._unit(float32), _by_balls(function, value)
        bound = np.minimum(error, 2.0) + units * unit * np.abs(wave) + self.accuracy.floor
        if self.bits[x.dtype] > self.bits[float32]:
            bound = bound + ROUNDOFFS["reduction, times min(|angle|, pi)"].units * unit * np.minimum(np.abs(value), np.pi)
        return Array((wave, np.where((value == 0) & (error == 0), 0.0, bound)), float32, self)

    # ---- matrices ----------------------------------------------------------------------------------------------------------
    def skew_exponential(self, x: Array) -> Array:
        """
        Return the exponentials of skew-symmetric matrices in the class's working dtype, exact only at 0.

        They are orthogonal. So an error E of a matrix, itself skew-symmetric, moves the exponential by at most |E|.
        """
        value, error = x.parts
        size, off = _norm(value), _norm(error)
        own = ROUNDOFFS["skew exponential, times n^2 (1 + 2 |A|)"].units * self._growing(x.dtype, value, size)
        bound = np.where((size == 0) & (off == 0), 0.0, np.minimum(off, 2.0) + _growth(own) + self.accuracy.floor)
        found = _by_matrices(lambda a: a.exp(), value)
        return self.astype(Array((found, np.broadcast_to(bound, found.shape)), x.dtype, self), float32)

    def skew_exponential_adjoint(self, x: Array, g: Array) -> Array:
        """Return the cotangents `g` of the exponentials, carried back to skew-symmetric matrices `x`: no longer than g."""
        (value, error), (along, across) = x.parts, g.parts
        own = ROUNDOFFS["its derivative along G, times n^2 (1 + 2 |A|) |G|"].units
        moved = np.minimum(_norm(error), 2.0) + _growth(own * self._growing(x.dtype, value, _norm(value)))
        bound = _norm(across) + (_norm(along) + _norm(across)) * moved + self.accuracy.floor
        found = _by_matrices(derivative_of_exponential, -value, along)
        return self.astype(Array((found, np.broadcast_to(bound, found.shape)), x.dtype, self), float32)

    def _growing(self, dtype: Label, value: Part, size: Part) -> Part:
        """Return how the rounding error of an exponential grows with the matrix and its norm `size`."""
        return np.asarray(np.minimum(self._unit(dtype) * value.shape[-1] ** 2 * (1 + 2 * size), 4.0))  # 4 excludes nothing

    # ---- reductions ------------------------------------------------------------------------------------------------------
    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        values, errors = (np.moveaxis(part, axis, 0) for part in x.parts)
        total, error, size = (np.zeros(values.shape[1:]) for _ in range(3))
        for value, bound in zip(values, errors, strict=True):  # in a fixed order
            total, error, size = total + value, error + bound, size + np.abs(value)
        terms = np.count_nonzero((values != 0) | (errors != 0), axis=0)
        units = ROUNDOFFS["sum, times the terms' sum"].units * terms * self._unit(x.dtype)
        error = np.where(terms > 1, error + units * (size + error) + self.accuracy.floor, error)
        if keepdims:
            total, error = np.expand_dims(total, axis), np.expand_dims(error, axis)
        return Array((np.asarray(total), np.asarray(error)), x.dtype, self)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product. Every product counts as rounded, since code may scale an operand first."""
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


class Sensitivity(Bounds):
    """
    The namespace of (value, how far it moves when every sine and cosine is off by `SMALL`). No other operation errs.

    `SMALL` is so small that products of two such errors vanish. So bounds grow linearly, and divided by `SMALL` they are the
    half-width for each unit of error.
    """

    SMALL = 2.0**-100

    def __init__(self) -> None:
        super().__init__(Accuracy(53, 53, 53, 0.0))

    def _unit(self, dtype: Label) -> float:
        return 0.0

    def _wave(self, x: Array, function: Callable[[arb], arb], units: float) -> Array:
        wave, bound = super()._wave(x, function, units).parts
        return Array((wave, bound + self.SMALL), float32, self)

    def skew_exponential(self, x: Array) -> Array:
        """Return the exponentials of skew-symmetric matrices. Their entries are off by as much as sines and cosines."""
        found, bound = super().skew_exponential(x).parts
        return Array((found, bound + self.SMALL), float32, self)

    def skew_exponential_adjoint(self, x: Array, g: Array) -> Array:
        """Return cotangents carried back, between two exponentials that are off."""
        found, bound = super().skew_exponential_adjoint(x, g).parts
        return Array((found, bound + 2 * g.shape[-1] * self.SMALL * _norm(g.parts[0])), float32, self)


def bounds(name: str) -> Bounds:
    """Return the namespace of the accuracy class called `name`."""
    return Bounds(CLASSES[name])


def rounded_up(error: Part) -> Part:
    """Return bounds as float32, rounded up."""
    with np.errstate(over="ignore"):
        nearest = error.astype(np.float32)
        return np.where(nearest.astype(np.float64) < error, np.nextafter(nearest, np.float32(np.inf)), nearest)


def _growth(change: Part) -> Part:
    """Return an upper bound of ``exp(change) - 1``."""
    with np.errstate(over="ignore"):
        return np.where(change < 1, change * (1 + change), np.where(change < 700, np.exp2(1.5 * np.ceil(change)), np.inf))


def _exact_product(a: Part, b: Part) -> Part:
    """
    Return where the float64 product of `a` and `b` is exact: the product of their significands, as odd integers, has 53 bits.

    That product is itself computed in float64: below 2**53 it is exact, and above it is never rounded to less.
    """
    return np.asarray(_odd(a) * _odd(b) < 2.0**53)


def _odd(x: Part) -> Part:
    """Return the significand of each float64 as an odd integer; 0 for 0, infinities and NaN."""
    mantissa, _ = np.frexp(x)
    whole = np.abs(np.ldexp(np.where(np.isfinite(mantissa), mantissa, 0.0), 53)).astype(np.int64)
    return np.asarray(whole // np.maximum(whole & -whole, 1), dtype=np.float64)


def _norm(matrices: Part) -> Part:
    """Return the Frobenius norms of matrices, keeping both axes with size 1; sums run in a fixed order."""
    total = np.zeros((*matrices.shape[:-2], 1, 1))
    for index in np.ndindex(matrices.shape[-2:]):
        total = total + matrices[(..., *index)][..., None, None] ** 2
    return np.sqrt(total)


def _by_matrices(function: Callable[..., arb_mat], *parts: Part) -> Part:
    """Return a function of matrices, computed on balls: the middle of each ball, rounded to float64."""
    with precision(160):
        found = by_matrices(function, *(np.frompyfunc(arb, 1, 1)(part) for part in parts))
        return np.asarray(np.frompyfunc(round_to_float64, 1, 1)(found), dtype=np.float64)


def _by_balls(function: Callable[..., arb], *parts: Part) -> Part:
    """Return an elementary function, computed on balls and correctly rounded."""

    def one(*numbers: float) -> float:
        return nearest_float64(function(*(arb(n) if np.isfinite(n) else arb(str(n)) for n in numbers)))

    with precision(160):
        return np.asarray(np.frompyfunc(one, len(parts), 1)(*parts), dtype=np.float64)
