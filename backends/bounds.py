"""
Error bounds: arrays of (value, bound, waived). Run on them, a definition says how far a correct implementation may be off.

Every operation adds the first-order worst case over all reasonable implementations of it. Each accuracy class has its own
namespace, which says how many significand bits float64, float32 and the storage dtype have. A dtype wider than the class allows
does not help. Elementary functions are correctly rounded and sums run in a fixed order, so tolerances are the same on every
machine. They need python-flint, unless a subclass computes them in another way (`elementary`, `of_matrices`).

An exact product adds nothing to its bound. But code may multiply in another order, ``x (B 2pi)`` for ``(x B) 2pi``, and round
what is exact here. So the rounding that an exact product did without is kept beside the bound, as `waived`: none where a factor
is 0 or a power of two, since these never round. A product joins what its factors waived to its bound as soon as it is not exact
itself. Sums carry it along. Elementary functions, minima and maxima drop it: no order of factors reaches through them.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from . import rounding
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
from .roundoffs import CLASSES, ROUNDOFFS, Accuracy

Exactness = Callable[[Any], Part]  # of an index: which of the selected elements are exact, or the like


class Bounds(NumberSystem):
    """The namespace of (value, bound, waived) for one accuracy class."""

    __name__ = "posref.backends.bounds"

    def __init__(self, accuracy: Accuracy) -> None:
        self.accuracy = accuracy
        self.bits = {float64: accuracy.float64, float32: accuracy.float32, storage: accuracy.storage}
        self.bits[matrices] = min(accuracy.float64, max(accuracy.float32, 24))
        self.bits[frequencies] = accuracy.power or accuracy.float64
        self.bits[angles] = accuracy.angle or accuracy.float64
        self.formulas = True  # whether `either` also asks its second formula

    def of_first_formulas(self) -> Self:
        """Return this system without the second formulas of `either`: for a call in which these leave a decision open."""
        system = copy(self)
        system.formulas = False
        return system

    @property
    def pi(self) -> Array:
        """Pi, rounded once to the class's float64, with that rounding as its bound."""
        return self.array(np.pi, self._unit(float64) * np.pi, float64)

    def array(self, value: Part | float, error: Part | float, dtype: Label, waived: Part | float = 0.0) -> Array:
        """Return an array of this system from its parts."""
        value = np.asarray(value)
        if not isinstance(waived, np.ndarray) or waived.shape != value.shape:
            waived = np.broadcast_to(waived, value.shape) if isinstance(waived, np.ndarray) or waived else _zeros(value.shape)
        return Array((value, np.asarray(error), waived), dtype, self)

    # ---- rounding -----------------------------------------------------------------------------------------------------
    def _unit(self, dtype: Label) -> float:
        return 2.0 ** -self.bits[dtype]

    def _fits(self, value: Part, dtype: Label) -> Part:
        """Return where `value` is representable in `dtype`, with this class's number of bits."""
        fits = np.isfinite(value)
        return np.asarray(fits if self.bits[dtype] >= 53 else fits & _has_bits(value, self.bits[dtype]))

    def _rounded(
        self, value: Part, error: Part, waived: Part | float, exact: Exactness, dtype: Label, units: float = 1
    ) -> Array:  # fmt: skip
        """
        Return a result after an operation. No error is added where the operation was exact and the result fits.

        `exact` takes an index and says which of the selected elements were exact. It is only called where the error is still 0.
        """
        value, error = np.asarray(value, dtype=np.float64), np.asarray(error, dtype=np.float64)
        unit = units * self._unit(dtype)
        added = unit * (np.abs(value) + error) + self.accuracy.floor
        total = np.asarray(error + added)
        none = np.asarray(error == 0)
        count = np.count_nonzero(none)  # faster than `any` and `all`, and asked for every operation
        if count and (unit or self.accuracy.floor):
            at: Any = ... if count == none.size else _broadcast(none, total.shape)
            there = value[at]
            free = exact(at) & self._fits(there, dtype) & ((there == 0) | (np.abs(there) >= self.accuracy.normal))
            total[at] = np.where(free, 0.0, total[at])
        return self.array(value, total, dtype, waived)

    def _product(
        self, value: Part, error: Part, waived: Part | float, exact: Exactness, idle: Exactness, dtype: Label, units: float
    ) -> Array:  # fmt: skip
        """
        Return a product or quotient, whose factors `waived` so much. It waives its own rounding where it is exact.

        `idle` takes an index and says where a factor is 0 or a power of two. It is only called where the result is exact.
        """
        value, total, before = self._rounded(value, error, waived, exact, dtype, units).parts
        free = total == 0
        if waives(before):
            total = np.where(free, 0.0, total + before)
        count = np.count_nonzero(free)
        if not count:
            return self.array(value, total, dtype)
        at: Any = ... if count == free.size else free
        rounded = np.where(idle(at), 0.0, units * self._unit(dtype) * np.abs(value[at]))
        if not (rounded.any() or waives(before)):
            return self.array(value, total, dtype)
        kept = np.zeros(value.shape)
        kept[at] = before[at] + rounded
        return self.array(value, total, dtype, kept)

    def real(self, values: Part, dtype: Label) -> Array:
        value = np.asarray(values, dtype=np.float64)
        if (self._fits(value, dtype) & (value == values)).all():
            return self.array(value, np.zeros(value.shape), dtype)
        infinite = np.isinf(value)
        exact = infinite | (value == np.asarray(values))
        fits = self._fits(value, dtype) | infinite
        error = np.where(fits & exact, 0.0, self._unit(dtype) * np.where(infinite, 0.0, np.abs(value)))
        return self.array(value, error, dtype)

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
        value, error, waived = x.parts
        return self._rounded(value, error, waived, lambda at: np.ones(value[at].shape, dtype=bool), dtype)

    # ---- arithmetic ----------------------------------------------------------------------------------------------------
    def real_add(self, a: Array, b: Array, dtype: Label) -> Array:
        (p, e, u), (q, f, w) = a.parts, b.parts
        total = np.asarray(p + q)
        p, q = np.broadcast_arrays(p, q)

        def exact(at: Any) -> Part:
            a, b, both = p[at], q[at], total[at]
            return np.asarray((a - (both - (both - a))) + (b - (both - a)) == 0)  # Knuth's exact remainder

        waived = u + w if waives(u) or waives(w) else 0.0
        return self._rounded(total, e + f, waived, exact, dtype, ROUNDOFFS["add"].units)

    def real_multiply(self, a: Array, b: Array, dtype: Label) -> Array:
        (p, e, _), (q, f, _) = a.parts, b.parts
        error = np.abs(p) * f + np.abs(q) * e + e * f
        product = np.asarray(p * q)

        known: list[Part] = []

        def significands() -> list[Part]:  # of both factors, once: a decorator for that takes longer than they
            if not known:
                known.extend(_broadcast(odd(factor), product.shape) for factor in (p, q))
            return known

        def exact(at: Any) -> Part:
            first, second = significands()
            return np.asarray(first[at] * second[at] < 2.0**53)

        def idle(at: Any) -> Part:
            first, second = significands()
            return np.asarray((first[at] <= 1) | (second[at] <= 1))

        return self._product(product, error, waived_by_factors(a, b), exact, idle, dtype, ROUNDOFFS["multiply"].units)

    def real_divide(self, a: Array, b: Array, dtype: Label) -> Array:
        (p, e, u), (q, f, w) = a.parts, b.parts
        room = np.abs(q) - f  # not a number where the divisor overflowed
        if (room <= 0).any():
            msg = "division by a number that may be zero"
            raise Undecided(msg)
        quotient = np.asarray(p / q)
        error, waived = (e + np.abs(quotient) * f) / room, (u + np.abs(quotient) * w) / room
        p, divisor = _broadcast(p, quotient.shape), _broadcast(q, quotient.shape)

        def exact(at: Any) -> Part:
            return np.asarray(_exact_product(quotient[at], divisor[at]) & (quotient[at] * divisor[at] == p[at]))

        def idle(at: Any) -> Part:
            return np.asarray((quotient[at] == 0) | (odd(divisor[at]) <= 1))

        return self._product(quotient, error, waived, exact, idle, dtype, ROUNDOFFS["divide"].units)

    def real_pow(self, a: Array, b: Array, dtype: Label) -> Array:
        x, y = np.broadcast_arrays(a.parts[0], b.parts[0])
        e, f = np.broadcast_arrays(a.parts[1], b.parts[1])
        zero = (x == 0) & (e == 0) & (y - f > 0)  # and an exponent that is surely positive
        if np.count_nonzero((x - e <= 0) & ~zero):
            msg = "power of a number that may not be positive"
            raise Undecided(msg)
        x = np.where(zero, 1.0, x)
        log = self.elementary("log", x)
        power = self.elementary("pow", x, y)
        change = np.abs(y) * e / (x - e) + np.abs(log) * f
        units = ROUNDOFFS["pow"].units + ROUNDOFFS["pow, times |y ln x|"].units * np.abs(y * log)
        unit = max(self._unit(dtype), self._unit(frequencies))
        bound = power * (growth(change) + unit * units) + self.accuracy.floor
        exact = zero | ((y == 0) & (f == 0))
        return self.array(np.where(zero, 0.0, power), np.where(exact, 0.0, bound), dtype)

    def real_minimum(self, a: Array, b: Array, dtype: Label) -> Array:
        return self._extreme(a, b, dtype, np.minimum)

    def real_maximum(self, a: Array, b: Array, dtype: Label) -> Array:
        return self._extreme(a, b, dtype, np.maximum)

    def _extreme(self, a: Array, b: Array, dtype: Label, choose: Callable[..., Part]) -> Array:
        (p, e, _), (q, f, _) = a.parts, b.parts
        value = choose(p, q)
        apart = np.abs(p - q) > e + f
        error = np.where(apart, np.where(value == p, e, f), np.maximum(e, f))
        return self.array(value, error, dtype)

    def real_compare(self, name: str, a: Array, b: Array) -> Part:
        (p, e, _), (q, f, _) = a.parts, b.parts
        known = (np.abs(p - q) > e + f) | ((e == 0) & (f == 0))
        if not known.all():
            msg = f"{name} within the error bounds"
            raise Undecided(msg)
        return np.asarray(getattr(np, name)(p, q))

    def surely_greater(self, a: Array, b: Array) -> Part:
        """Return where a > b for all errors within the bounds."""
        (p, e, _), (q, f, _) = a.parts, b.parts
        return np.asarray(p - q > e + f)

    def between(self, low: Part, high: Part, dtype: Label) -> Array:
        """Return the middle of two NumPy arrays, with half their distance as its bound."""
        return self.array((low + high) / 2, (high - low) / 2, dtype)

    def slope(self, a: Array, b: Array) -> Array:
        """
        Return the derivative of max(a, b) with respect to a: 1 or 0, with a bound of 1 where the errors allow both.

        The value is the derivative without errors, since tolerances are laid about the true value. A bound of 1/2 about 1/2
        would exclude the other. Only numbers that are equal without errors have everything between.
        """
        (p, e, _), (q, f, _) = a.parts, b.parts
        known = self.surely_greater(a, b) | self.surely_greater(b, a)
        error = np.where(known, 0.0, np.where(e + f > 0, 1.0, 0.5))
        return self.array((p > q) + 0.5 * (p == q), error, a.dtype)

    def _step(self, x: Array, step: Callable[[Part], Part]) -> Array:
        value, error, _ = x.parts
        low, high = step(value - error), step(value + error)
        if np.count_nonzero(low != high):
            msg = "rounding to an integer within the error bounds"
            raise Undecided(msg)
        return self.array(low, np.zeros_like(error), x.dtype)

    def floor(self, x: Array) -> Array:
        """Return the largest integer not above x. Raise `Undecided` if the bound allows two."""
        return self._step(x, np.floor)

    def ceil(self, x: Array) -> Array:
        """Return the smallest integer not below x. Raise `Undecided` if the bound allows two."""
        return self._step(x, np.ceil)

    def saturated(self, x: Array, bits: int, least: int, largest: float, dtype: Label) -> Array:
        """
        Return the nearest number of a narrow format, as `rounding.saturated` does, in a dtype that has all of them.

        The bound is 0 where all that the bound of `x` allows rounds to one number. Elsewhere it reaches to the other numbers.
        """
        value, error, _ = x.parts
        result, *ends = (rounding.saturated(end, bits, least, largest) for end in (value, value - error, value + error))
        return self.array(result, np.maximum(result - ends[0], ends[1] - result), dtype)

    def sqrt(self, x: Array) -> Array:
        """Return the square root."""
        value, error, _ = x.parts
        if np.count_nonzero(value - error < 0):
            msg = "square root of a number that may be negative"
            raise Undecided(msg)
        root = np.sqrt(value)
        spread = np.where(error == 0, 0.0, error / (root + np.sqrt(value - error)))
        exact = np.asarray(_exact_product(root, root) & (root * root == value))
        return self._rounded(root, spread, 0.0, exact.__getitem__, x.dtype, ROUNDOFFS["sqrt"].units)

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
        value, error, _ = x.parts
        power = self.elementary("exp", value)
        relative = growth(error) + ROUNDOFFS["exp"].units * self._unit(x.dtype)
        grown = np.where(power == 0, 0.0, power * relative)  # the power underflowed to zero and its exponent is unbounded
        bound = grown + self.accuracy.floor
        return self.array(power, np.where((value == 0) & (error == 0), 0.0, bound), x.dtype)

    def log(self, x: Array) -> Array:
        """Return the natural logarithm, exact only at 1."""
        value, error, _ = x.parts
        least = value - error  # of an infinite number nothing is told
        if np.count_nonzero(least <= 0):
            msg = "logarithm of a number that may not be positive"
            raise Undecided(msg)
        log = np.where(np.isinf(value), value, self.elementary("log", np.where(np.isinf(value), 1.0, value)))
        rounded = ROUNDOFFS["log"].units * self._unit(x.dtype) * np.where(np.isinf(log), 0.0, np.abs(log))
        bound = error / least + rounded + self.accuracy.floor
        return self.array(log, np.where((value == 1) & (error == 0), 0.0, bound), x.dtype)

    def log1p(self, x: Array) -> Array:
        """Return the natural logarithm of 1 + x, exact only at 0. Within the error its slope is at most 1/(1 + x - error)."""
        value, error, _ = x.parts
        if np.count_nonzero(1 + value - error <= 0):
            msg = "logarithm of a number that may not be positive"
            raise Undecided(msg)
        log = self.elementary("log1p", value)
        rounded = ROUNDOFFS["log1p"].units * self._unit(x.dtype) * np.abs(log)
        bound = error / (1 + value - error) + rounded + self.accuracy.floor
        return self.array(log, np.where((value == 0) & (error == 0), 0.0, bound), x.dtype)

    def tanh(self, x: Array) -> Array:
        """Return the hyperbolic tangent, exact only at 0. Its slope is largest where the errors come nearest to 0."""
        value, error, _ = x.parts
        result, nearest = (self.elementary("tanh", part) for part in (value, np.maximum(np.abs(value) - error, 0.0)))
        off = np.minimum(error * (1 - nearest**2 + 2.0**-50), 2.0)
        bound = off + ROUNDOFFS["tanh"].units * self._unit(x.dtype) * np.abs(result) + self.accuracy.floor
        return self.array(result, np.where((value == 0) & (error == 0), 0.0, bound), x.dtype)

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
        bound = self._wave(self.real_multiply(x, self.pi, x.dtype), name, ROUNDOFFS[name].units).parts[1]
        return self.array(self.elementary(f"{name}_pi", x.parts[0]), bound, float32)

    def constant_sin(self, x: Array) -> Array:
        """Return the sine of one of the definition's constants (not of a position's angle), in the dtype of `x`."""
        value, error, _ = x.parts
        wave = self.elementary("sin", value)
        bound = np.minimum(error, 2.0) + ROUNDOFFS["sin"].units * self._unit(x.dtype) * np.abs(wave) + self.accuracy.floor
        return self.array(wave, np.where((value == 0) & (error == 0), 0.0, bound), x.dtype)

    def _wave(self, x: Array, name: str, units: float) -> Array:
        value, error, _ = x.parts
        unit, wave = self._unit(float32), self.elementary(name, value)
        bound = np.minimum(error, 2.0) + units * unit * np.abs(wave) + self.accuracy.floor
        if self.bits[float64 if x.dtype is angles else x.dtype] > self.bits[float32]:
            bound = bound + ROUNDOFFS["reduction, times min(|angle|, pi)"].units * unit * np.minimum(np.abs(value), np.pi)
        return self.array(wave, np.where((value == 0) & (error == 0), 0.0, bound), float32)

    # ---- formulas ----------------------------------------------------------------------------------------------------------
    def settled(self, x: Array) -> Array:
        """Return `x` without the roundings that it waived."""
        value, error, _ = x.parts
        return self.array(value, error, x.dtype)

    def either(self, a: Array, b: Callable[[], Array]) -> Array:
        """Return the first of two formulas for the same numbers, with the larger of both finite bounds."""
        if not self.formulas:
            return a
        value, *errors = a.parts
        error, waived = (np.where(np.isfinite(g), np.maximum(f, g), f) for f, g in zip(errors, b().parts[1:], strict=True))
        return self.array(value, error, a.dtype, waived)

    # ---- reductions ------------------------------------------------------------------------------------------------------
    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        values, errors, more = (np.moveaxis(part, axis, 0) for part in x.parts)
        total, error, waived, size = (np.zeros(values.shape[1:]) for _ in range(4))
        for value, bound in zip(values, errors, strict=True):  # fixed order
            total, error, size = total + value, error + bound, size + np.abs(value)
        for term in more if waives(more) else ():
            waived = waived + term
        terms = np.count_nonzero((values != 0) | (errors != 0), axis=0)
        units = ROUNDOFFS["sum, times the terms' sum"].units * terms * self._unit(x.dtype)
        error = np.where(terms > 1, error + units * (size + error) + self.accuracy.floor, error)
        if keepdims:
            total, error, waived = (np.expand_dims(part, axis) for part in (total, error, waived))
        return self.array(total, error, x.dtype, waived)

    def real_cumulative_sum(self, x: Array, axis: int) -> Array:
        """Return cumulative sums. Every sum may be formed in any order, as a parallel scan does."""
        value, error, waived = x.parts
        total, errors, left, size = (np.cumsum(part, axis=axis) for part in (value, error, waived, np.abs(value)))
        terms = np.cumsum((value != 0) | (error != 0), axis=axis)
        units = ROUNDOFFS["sum, times the terms' sum"].units * terms * self._unit(x.dtype)
        bound = np.where(terms > 1, errors + units * (size + errors) + self.accuracy.floor, errors)
        return self.array(total, bound, x.dtype, left)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product. Each of several products counts as rounded, because code may scale an operand first."""
        p, q = a[..., :, :, None], b[..., None, :, :]
        products = self.multiply(p, q)
        value, error, waived = products.parts
        several = np.count_nonzero(value, axis=-2, keepdims=True) > 1
        rounded = self._unit(products.dtype) * np.abs(value) + waived_by_factors(p, q)
        error = np.where((error == 0) & (value != 0) & several, rounded, error)
        return self.sum(self.array(value, error, products.dtype, np.where(several, 0.0, waived)), axis=-2)

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return the largest along `axis`."""
        value, error, _ = x.parts
        finite = np.where(np.isinf(value), 0.0, error)
        return self.array(np.max(value, axis=axis, keepdims=keepdims), np.max(finite, axis=axis, keepdims=keepdims), x.dtype)

    # ---- functions of whole matrices, by norms --------------------------------------------------------------------------
    def cayley(self, x: Array, found: Array) -> Array:
        """
        Return the Cayley transforms `found` of skew-symmetric matrices, with the bound of any solve or inverse.

        They are orthogonal, and the norm of the inverse of I + S is at most 1. So an error E of S moves them by at most 2 |E|.
        """
        value, error, _ = found.parts
        off = np.minimum(2 * norm(x.parts[1]), 2.0) + self._solved(x)
        return self.array(value, np.maximum(error, off), found.dtype)

    def cayley_adjoint(self, u: Array, x: Array, g: Array) -> Array:
        """Return the cotangents `g` of the Cayley transforms `u`, carried back to `x`. Their norm is at most 2 |g|."""
        gradient, error, _ = pulled_through_cayley(u, g).parts
        solved = 3 * self._solved(x) * (norm(g.parts[0]) + norm(g.parts[1]))
        return self.array(gradient, np.maximum(error, solved), g.dtype)

    def _solved(self, x: Array) -> Part:
        """Return how far (I - S)(I + S)^-1 may be off if computed by elimination. |S| is at most |S|_F / sqrt(2)."""
        size = norm(x.parts[0]) + norm(x.parts[1])
        grown = x.shape[-1] ** 2 * (1 + size**2 / 2) ** 1.5
        rounded = ROUNDOFFS["Cayley transform, times n^2 (1 + |S|^2)^(3/2)"].units * self._unit(x.dtype) * grown
        return np.where(size == 0, 0.0, np.minimum(rounded, 2.0) + self.accuracy.floor)

    def without(self, x: Array, w: Array, strength: Array, changed: Array) -> Array:
        """
        Return `changed`, x - strength (x . w) w along the last axis, with the same bound in every component: that of a norm.

        So must the bound of x be, unless it is 0: a long chain of such steps neither rotates nor grows a norm, while bounds of
        components would grow at each. If b is the strength, the matrix has the norm N = max(1, |1 - b |w|^2|). The products and
        sums of n components add (n + 2) u b |w|^2 |x|, and the difference u N |x|.
        """
        (value, error, _), n = x.parts, x.shape[-1]
        stretch = strength.parts[0] * np.sum(w.parts[0] ** 2, axis=-1, keepdims=True)
        off = np.max(error, axis=-1, keepdims=True, initial=0.0)
        size = np.sqrt(np.sum(value**2, axis=-1, keepdims=True)) + off
        grown = np.maximum(1.0, np.abs(1 - stretch))
        rounded = self._unit(changed.dtype) * ((n + 2) * np.abs(stretch) + grown) * size + self.accuracy.floor
        bound = np.where(stretch == 0, off, grown * off + rounded)
        return self.array(changed.parts[0], np.broadcast_to(bound, changed.shape), changed.dtype)

    def skew_exponential(self, x: Array) -> Array:
        """
        Return the exponentials of skew-symmetric matrices in the class's working dtype, exact only at 0.

        They are orthogonal. So a skew-symmetric error E of a matrix moves its exponential by at most |E|.
        """
        value, error, _ = x.parts
        size, off, n = norm(value), norm(error), x.shape[-1]
        products = n * (n + 16) if self._unit(x.dtype) == 2.0**-53 else n**2
        rounded = ROUNDOFFS["skew exponential, times n^2 (1 + 2 |A|)"].units * self._growing(x.dtype, products, size)
        bound = np.where((size == 0) & (off == 0), 0.0, np.minimum(off, 2.0) + growth(rounded) + self.accuracy.floor)
        exponential = self.of_matrices("exponential", value)
        return self.astype(self.array(exponential, np.broadcast_to(bound, exponential.shape), x.dtype), float32)

    def skew_exponential_adjoint(self, x: Array, g: Array) -> Array:
        """Return the cotangents `g` of the exponentials, carried back to skew-symmetric `x`. Their norm is at most |g|."""
        (value, error, _), (along, across, _) = x.parts, g.parts
        units = ROUNDOFFS["its derivative along G, times n^2 (1 + 2 |A|) |G|"].units
        moved = np.minimum(norm(error), 2.0) + growth(units * self._growing(x.dtype, x.shape[-1] ** 2, norm(value)))
        bound = norm(across) + (norm(along) + norm(across)) * moved + self.accuracy.floor
        gradient = self.of_matrices("derivative_of_exponential", -value, along)
        return self.astype(self.array(gradient, np.broadcast_to(bound, gradient.shape), x.dtype), float32)

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
        wave, bound, _ = super()._wave(x, name, units).parts
        return self.array(wave, bound + self.SMALL, float32)

    def skew_exponential(self, x: Array) -> Array:
        """Return the exponentials of skew-symmetric matrices. Their entries get the same error as sines and cosines."""
        exponential, bound, _ = super().skew_exponential(x).parts
        return self.array(exponential, bound + self.SMALL, float32)

    def skew_exponential_adjoint(self, x: Array, g: Array) -> Array:
        """Return the cotangents of the exponentials, carried back, with the error of both exponentials."""
        gradient, bound, _ = super().skew_exponential_adjoint(x, g).parts
        return self.array(gradient, bound + 2 * g.shape[-1] * self.SMALL * norm(g.parts[0]), float32)


def bounds(name: str) -> Bounds:
    """Return the namespace of the accuracy class called `name`."""
    return Bounds(CLASSES[name])


@lru_cache(maxsize=256)  # nearly every array waives nothing, and NumPy takes long to broadcast
def _zeros(shape: tuple[int, ...]) -> Part:
    """Return zeros that are one number in memory, and cannot be written."""
    return np.broadcast_to(0.0, shape)


def _broadcast(x: Part, shape: tuple[int, ...]) -> Part:
    """Return an array repeated to a shape, if it does not have it: NumPy takes long to say so."""
    return x if x.shape == shape else np.broadcast_to(x, shape)


def waives(waived: Part) -> bool:
    """Return whether any rounding was waived. Arrays that repeat one number, the usual zero, are not read as a whole."""
    return bool(waived.size) and bool(waived.any() if any(waived.strides) else waived.item(0))


def waived_by_factors(a: Array, b: Array) -> Part | float:
    """Return the roundings that two factors waived, as their product has them; the number 0 if there are none."""
    (p, _, u), (q, _, w) = a.parts, b.parts
    if not (waives(u) or waives(w)):
        return 0.0
    return np.asarray(np.abs(p) * w + np.abs(q) * u)


def rounded_up(error: Part) -> Part:
    """
    Return bounds as float32 of 11 significant bits, rounded up.

    They are at most a thousandth wider than the derived ones, and files of them compress to two thirds. Bounds below the
    smallest normal number keep all their bits.
    """
    with np.errstate(over="ignore"):
        nearest = error.astype(np.float32)
        above = np.where(nearest.astype(np.float64) < error, np.nextafter(nearest, np.float32(np.inf)), nearest)
    unstored = np.uint32(2**13 - 1)
    short = ((above.view(np.uint32) + unstored) & ~unstored).view(np.float32)
    return np.where(above < np.finfo(np.float32).tiny, above, short)


def _exact_product(a: Part, b: Part) -> Part:
    """
    Return where the float64 product of `a` and `b` is exact: where the product of their odd significands is below 2**53.

    That product is itself computed in float64. Below 2**53 it is exact, and a larger one is never rounded to below 2**53.
    """
    return np.asarray(odd(a) * odd(b) < 2.0**53)


def _has_bits(x: Part, bits: int) -> Part:
    """Return where the odd significand of each float64 is below 2**bits: no lower bit of it is set."""
    whole = np.asarray(x, dtype=np.float64, order="C").view(np.int64)
    has = np.asarray(whole & ((1 << (53 - bits)) - 1) == 0)
    tiny = ~has & (whole & (0x7FF << 52) == 0)  # a subnormal number has fewer bits above
    return np.where(tiny, odd(x) < 2.0**bits, has) if np.count_nonzero(tiny) else has


def odd(x: Part) -> Part:
    """Return the significand of each float64 as an odd integer; 0 for 0, infinities and NaN."""
    bits = np.asarray(x, dtype=np.float64, order="C").view(np.int64)
    exponent, whole = bits & (0x7FF << 52), bits & ((1 << 52) - 1)
    whole = np.where(exponent == 0, whole, whole | (1 << 52)) * (exponent != 0x7FF << 52)
    return np.asarray(whole / np.maximum(whole & -whole, 1))  # division by a power of two, exact


def norm(matrices: Part) -> Part:
    """Return the Frobenius norms of matrices, keeping both axes with size 1. Sums run in a fixed order."""
    total = np.zeros((*matrices.shape[:-2], 1, 1))
    for index in np.ndindex(matrices.shape[-2:]):
        total = total + matrices[(..., *index)][..., None, None] ** 2
    return np.sqrt(total)


def growth(change: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an upper bound of ``exp(change) - 1``."""
    with np.errstate(over="ignore"):
        return np.where(change < 1, change * (1 + change), np.where(change < 700, np.exp2(1.5 * np.ceil(change)), np.inf))
