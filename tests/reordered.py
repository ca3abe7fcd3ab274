"""
Definitions in another order: a number system that puts off products, and multiplies when somebody needs the number.

A definition that runs on it is computed as another author might write it. Factors are multiplied in a drawn order; a division
comes where the definition has it, or after them. A factor of a dot product goes into its terms, or comes after the sum. Sums of
terms run in a drawn order. Half turns are multiplied by pi before the sine, together with the other factors, or after. Of two
formulas for the same numbers one is drawn.

On `Single` every operation rounds once to float32: correct code. On error bounds it says what such code is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partialmethod
from typing import Any, NamedTuple

import numpy as np

from posref.backends.live import live
from posref.backends.numbers import Array, Label, NumberSystem, Part, float32, float64
from posref.backends.rounding import saturated


class Single(NumberSystem):
    """The namespace of NumPy's float32. Elementary functions are correctly rounded."""

    __name__ = "single"

    def array(self, value: Any, dtype: Label) -> Array:
        with np.errstate(all="ignore"):
            return Array((np.asarray(value, dtype=np.float32),), dtype, self)

    @property
    def pi(self) -> Array:
        return self.array(np.pi, float64)

    def real(self, values: Part, dtype: Label) -> Array:
        return self.array(values, dtype)

    def astype(self, x: Array, dtype: Label) -> Array:
        if dtype.kind == "real floating":
            return self.array(x.parts[0], dtype)
        return Array((x.parts[0].astype(np.int64),), dtype, self)

    def _operation(self, function: Callable[..., Part], a: Array, b: Array, dtype: Label) -> Array:
        with np.errstate(all="ignore"):
            found = np.asarray(function(a.parts[0], b.parts[0]))
        assert found.dtype == np.float32
        return self.array(found, dtype)

    real_add, real_multiply = partialmethod(_operation, np.add), partialmethod(_operation, np.multiply)
    real_minimum, real_maximum = partialmethod(_operation, np.minimum), partialmethod(_operation, np.maximum)
    real_divide = partialmethod(_operation, np.divide)

    def real_pow(self, a: Array, b: Array, dtype: Label) -> Array:
        return self._elementary("pow", dtype, *np.broadcast_arrays(a.parts[0], b.parts[0]))

    def real_compare(self, name: str, a: Array, b: Array) -> Part:
        return np.asarray(getattr(np, name)(a.parts[0], b.parts[0]))

    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        terms = np.moveaxis(x.parts[0], axis, 0)
        total = np.zeros(terms.shape[1:], dtype=np.float32)
        for term in terms:
            total = total + term
        return self.array(np.expand_dims(total, axis) if keepdims else total, x.dtype)

    def real_cumulative_sum(self, x: Array, axis: int) -> Array:
        return self.array(np.cumsum(x.parts[0], axis=axis, dtype=np.float32), x.dtype)

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        return self.array(np.max(x.parts[0], axis=axis, keepdims=keepdims), x.dtype)

    def _elementary(self, name: str, dtype: Label, *parts: Part) -> Array:
        return self.array(live("float64").elementary(name, *(part.astype(np.float64) for part in parts)), dtype)

    def __getattr__(self, name: str) -> Callable[[Array], Array]:
        """Return an elementary function."""
        if name not in ("sqrt", "exp", "log", "log1p", "tanh", "sin", "cos", "sin_pi", "cos_pi", "floor", "ceil"):
            raise AttributeError(name)
        return lambda x: self._elementary(name, float32 if name[:3] in ("sin", "cos") else x.dtype, x.parts[0])

    def saturated(self, x: Array, bits: int, least: int, largest: float, dtype: Label) -> Array:
        return self.array(saturated(x.parts[0].astype(np.float64), bits, least, largest), dtype)

    def constant_sin(self, x: Array) -> Array:
        return self._elementary("sin", x.dtype, x.parts[0])

    def cayley(self, x: Array, found: Array) -> Array:
        return found

    def skew_exponential(self, x: Array) -> Array:
        return self.array(live("float64").of_matrices("exponential", x.parts[0].astype(np.float64)), float32)


class Factor(NamedTuple):
    """
    An array of the base system that multiplies or, if it is inverted, divides.

    A factor with `terms` is the sum along the first axis of their products, not computed yet.
    """

    value: Array | None
    inverted: bool = False
    terms: tuple[Array, ...] = ()


class Product(Array):
    """An array that is a product of `factors`, not multiplied yet."""

    def __init__(self, factors: tuple[Factor, ...], shape: tuple[int, ...], dtype: Label, xp: Reordered) -> None:
        self.factors, self.dtype, self.xp, self.owner = factors, dtype, xp, xp
        self._shape = shape
        self._value: Array | None = None

    @property
    def parts(self) -> tuple[Part, ...]:  # type: ignore[override]
        if self._value is None:
            self._value = self.owner.multiplied(self.factors, self._shape)
        return self._value.parts

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def ndim(self) -> int:
        return len(self._shape)


class Reordered(NumberSystem):
    """The namespace of another number system, `base`, with products in an order that `rng` draws."""

    __name__ = "reordered"

    def __init__(self, base: Any, rng: np.random.Generator) -> None:
        self.base, self.rng = base, rng

    def _plain(self, x: Array) -> Array:
        """Return an array in the base system."""
        return Array(x.parts, x.dtype, self.base)

    def _own(self, x: Array) -> Array:
        return Array(x.parts, x.dtype, self)

    def _drawn(self, chance: float = 0.5) -> bool:
        return bool(self.rng.random() < chance)

    # ---- the drawn order -----------------------------------------------------------------------------------------------
    def multiplied(self, factors: tuple[Factor, ...], shape: tuple[int, ...]) -> Array:
        """Return a product, after some of the factors went into a dot product."""
        dots = [f for f in factors if f.terms]
        plain = [f for f in factors if not f.terms]
        if len(dots) == 1:
            inside = [f for f in plain if self._drawn()]
            plain = [f for f in plain if all(f is not other for other in inside)]
            plain.append(self._summed([*(Factor(x) for x in dots[0].terms), *map(self._beside_terms, inside)]))
        else:
            plain += [self._summed([Factor(x) for x in dot.terms]) for dot in dots]
        return self.base.broadcast_to(self._in_order(plain), shape)

    def _beside_terms(self, f: Factor) -> Factor:
        assert f.value is not None
        return Factor(self.base.moved(f.value, lambda part: part[None]), f.inverted)

    def _in_order(self, factors: list[Factor]) -> Array:
        order = sorted((factors[i] for i in self.rng.permutation(len(factors))), key=lambda f: f.inverted)
        found = order[0].value
        assert found is not None
        assert not order[0].inverted
        for f in order[1:]:
            found = self.base.divide(found, f.value) if f.inverted else self.base.multiply(found, f.value)
        return found

    def _summed(self, factors: list[Factor]) -> Factor:
        terms = self._in_order(factors)
        order = self.rng.permutation(len(terms))
        return Factor(self.base.sum(self.base.moved(terms, lambda part: part[order]), axis=0))

    def _factors(self, x: Array, shape: tuple[int, ...]) -> tuple[Factor, ...]:
        """Return the factors of an array, each broadcast to a shape."""
        if not isinstance(x, Product):
            return (Factor(self.base.broadcast_to(self._plain(x), shape)),)
        return tuple(self._spread(f, shape) for f in x.factors)

    def _spread(self, f: Factor, shape: tuple[int, ...]) -> Factor:
        def aligned(part: Part) -> Part:
            ones = (1,) * (len(shape) + 1 - part.ndim)
            return np.broadcast_to(part.reshape(len(part), *ones, *part.shape[1:]), (len(part), *shape))

        if f.value is None:
            return f._replace(terms=tuple(self.base.moved(x, aligned) for x in f.terms))
        return f._replace(value=self.base.broadcast_to(f.value, shape))

    def moved(self, x: Array, move: Callable[[Part], Part]) -> Array:
        if not isinstance(x, Product):
            return super().moved(x, move)

        def each(part: Part) -> Part:
            return np.stack([move(term) for term in part])

        shape = np.shape(move(np.broadcast_to(0.0, x.shape)))
        found = []
        for f in self._factors(x, x.shape):
            if f.value is None:
                found.append(f._replace(terms=tuple(self.base.moved(term, each) for term in f.terms)))
            else:
                found.append(f._replace(value=self.base.moved(f.value, move)))
        return Product(tuple(found), shape, x.dtype, self)

    # ---- what is put off -----------------------------------------------------------------------------------------------
    def real_multiply(self, a: Array, b: Array, dtype: Label) -> Array:
        shape = np.broadcast_shapes(a.shape, b.shape)
        return Product((*self._factors(a, shape), *self._factors(b, shape)), shape, dtype, self)

    def real_divide(self, a: Array, b: Array, dtype: Label) -> Array:
        shape = np.broadcast_shapes(a.shape, b.shape)
        divisor = Factor(self.base.broadcast_to(self._plain(b), shape), inverted=True)
        found = Product((*self._factors(a, shape), divisor), shape, dtype, self)
        return found if self._drawn() else self.settled(found)

    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        factors = self._factors(x, x.shape)
        if len(factors) < 2 or any(f.value is None or f.inverted for f in factors):
            return self._own(self.base.sum(self._plain(x), axis=axis, keepdims=keepdims))
        terms = tuple(self.base.moved(f.value, lambda part: np.moveaxis(part, axis, 0)) for f in factors)
        shape = terms[0].shape[1:]
        found = Product((Factor(None, terms=terms),), shape, x.dtype, self)
        return self.moved(found, lambda part: np.expand_dims(part, axis)) if keepdims else found

    def astype(self, x: Array, dtype: Label) -> Array:
        if isinstance(x, Product) and dtype.kind == "real floating":
            return Product(x.factors, x.shape, dtype, self)
        return self._own(self.base.astype(self._plain(x), dtype))

    def negative(self, x: Array) -> Array:
        if isinstance(x, Product) and x.factors[0].value is not None:
            first = x.factors[0]._replace(value=self.base.negative(x.factors[0].value))
            return Product((first, *x.factors[1:]), x.shape, x.dtype, self)
        return super().negative(x)

    def sin_pi(self, x: Array) -> Array:
        return self.sin(self.multiply(x, self.pi)) if self._drawn(0.75) else self._own(self.base.sin_pi(self._plain(x)))

    def cos_pi(self, x: Array) -> Array:
        return self.cos(self.multiply(x, self.pi)) if self._drawn(0.75) else self._own(self.base.cos_pi(self._plain(x)))

    def either(self, a: Array, b: Callable[[], Array]) -> Array:
        return a if self._drawn() else b()

    # ---- what needs its numbers ----------------------------------------------------------------------------------------
    @property
    def pi(self) -> Array:
        return self._own(self.base.pi)

    def real(self, values: Part, dtype: Label) -> Array:
        return self._own(self.base.real(values, dtype))

    def settled(self, x: Array) -> Array:
        return self._own(self.base.settled(self._plain(x)))

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        return self._own(self.base.max(self._plain(x), axis=axis, keepdims=keepdims))

    def real_compare(self, name: str, a: Array, b: Array) -> Part:
        found: Part = self.base.real_compare(name, self._plain(a), self._plain(b))
        return found

    def _with_two(self, name: str, a: Array, b: Array, dtype: Label) -> Array:
        return self._own(getattr(self.base, name)(self._plain(a), self._plain(b), dtype))

    real_add, real_pow = partialmethod(_with_two, "real_add"), partialmethod(_with_two, "real_pow")
    real_minimum, real_maximum = partialmethod(_with_two, "real_minimum"), partialmethod(_with_two, "real_maximum")

    def real_cumulative_sum(self, x: Array, axis: int) -> Array:
        return self._own(self.base.real_cumulative_sum(self._plain(x), axis))

    def cayley(self, x: Array, found: Array) -> Array:
        return self._own(self.base.cayley(self._plain(x), self._plain(found)))

    def __getattr__(self, name: str) -> Callable[..., Array]:
        """Return a function of the base system."""
        function = getattr(self.base, name)
        return lambda x, *options: self._own(function(self._plain(x), *options))
