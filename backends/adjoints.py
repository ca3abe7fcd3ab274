"""
Derivatives: arrays over another number system that record how they were computed, for reverse-mode differentiation.

Over balls (intervals) this proves the gradients of a definition. Over error bounds it says how far a correct backward pass may
be off: one that forms the same products and sums, with one rounding each, and adds contributions in any order. Where a maximum
or an absolute value is not decided, the derivative covers everything between the two possible values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from .numbers import Array, Label, NumberSystem, Part

Pull = Callable[[Any], Any]
Parents = Sequence[tuple[Array, Pull]]


class Node(Array):
    """An array of reals computed from leaves, with its parents and a function for each that pulls a cotangent back."""

    def __init__(self, value: Array, xp: Adjoints, parents: Parents) -> None:
        super().__init__(value.parts, value.dtype, xp)
        self.parents, self.serial = parents, next(xp.serials)


class Adjoints(NumberSystem):
    """The namespace of another number system, `base`, that records how each array was computed from the leaves."""

    __name__ = "posref.backends.adjoints"

    def __init__(self, base: Any, *, second: bool = False) -> None:
        """Record over `base`; with `second` by the second formulas of `either`."""
        self.base, self.serials, self.second = base, count(), second
        self.holds_factors = base.holds_factors
        self.alternatives = False  # whether a definition has asked for one of two formulas

    def leaf(self, x: Array) -> Node:
        """Return `x` as a leaf: an array to differentiate with respect to."""
        return Node(x, self, ())

    def pull_back(self, outputs: Sequence[Array], cotangents: Sequence[Array], leaves: Sequence[Node]) -> list[Array]:
        """Return the cotangent of every leaf, in `base`, given the cotangents of the outputs."""
        pending: dict[int, list[Array]] = {}
        nodes: dict[int, Node] = {}

        def add(x: Array, cotangent: Array) -> None:
            if isinstance(x, Node):
                nodes[x.serial] = x
                pending.setdefault(x.serial, []).append(self.base.astype(cotangent, x.dtype))

        for output, cotangent in zip(outputs, cotangents, strict=True):
            add(output, cotangent)
        done: dict[int, Array] = {}
        while nodes:
            node = nodes.pop(max(nodes))  # the newest node: everything computed from it is done
            done[node.serial] = total = self._total(pending.pop(node.serial))
            for parent, pull in node.parents:
                add(parent, pull(total))
        return [done[x.serial] if x.serial in done else self.base.real(np.zeros(x.shape), x.dtype) for x in leaves]

    def _total(self, contributions: list[Array]) -> Any:
        """Return the sum of the cotangents from different paths, with a bound for any order."""
        if len(contributions) == 1:
            return contributions[0]
        return self.base.sum(self.base.stack(contributions, axis=0), axis=0)

    # ---- making nodes ------------------------------------------------------------------------------------------------------
    def _plain(self, x: Array) -> Any:
        return Array(x.parts, x.dtype, self.base)

    def _node(self, value: Array, *parents: tuple[Array, Pull]) -> Array:
        """Return a result of `base`, with those parents that depend on a leaf."""
        kept = [(x, pull) for x, pull in parents if isinstance(x, Node)]
        return Node(value, self, kept) if kept else Array(value.parts, value.dtype, self)

    def _elementwise(self, value: Array, *parents: tuple[Array, Pull]) -> Array:
        """Return a result of `base` whose parents were broadcast. Their cotangents are summed over repeated elements."""

        def narrowed(x: Array, pull: Pull) -> Pull:
            places = np.broadcast_to(_numbered(x.shape), value.shape)
            return lambda g: self._gathered(pull(g), places, x.shape)

        return self._node(value, *((x, pull if x.shape == value.shape else narrowed(x, pull)) for x, pull in parents))

    def _gathered(self, g: Array, places: Part, shape: tuple[int, ...]) -> Any:
        """Return an array of `shape` whose element n, counted flat, is the sum of `g` where `places` is n."""
        flat, size = places.reshape(-1), int(np.prod(shape))
        kept = np.flatnonzero((flat >= 0) & (flat < size))
        order = kept[np.argsort(flat[kept], kind="stable")]
        counts = np.bincount(flat[kept], minlength=size)
        rows = flat[order]
        table = np.full((size, max(counts, default=0) or 1), flat.size)  # the elements of each sum, padded with a zero
        table[rows, np.arange(order.size) - (np.cumsum(counts) - counts)[rows]] = order
        zero = self.base.real(np.zeros(1), g.dtype)
        padded = self.base.concat([self.base.reshape(g, (flat.size,)), zero], axis=0)
        terms = self.base.moved(padded, lambda part: part[table])
        total = self.base.sum(terms, axis=1) if table.shape[1] > 1 else terms[:, 0]
        return self.base.reshape(total, shape)

    # ---- reals, and moving them --------------------------------------------------------------------------------------------
    @property
    def pi(self) -> Array:
        """Pi in `base`."""
        return self._node(self.base.pi)

    def real(self, values: Part, dtype: Label) -> Array:
        return self._node(self.base.real(values, dtype))

    def astype(self, x: Array, dtype: Label) -> Array:
        return self._node(self.base.astype(self._plain(x), dtype), (x, lambda g: g))  # `add` casts the cotangent back

    def moved(self, x: Array, move: Callable[[Part], Part]) -> Array:
        if not isinstance(x, Node):
            return super().moved(x, move)
        places = np.asarray(move(_numbered(x.shape)))
        return self._node(self.base.moved(self._plain(x), move), (x, lambda g: self._gathered(g, places, x.shape)))

    def joined(self, arrays: Sequence[Array], join: Callable[[list[Part]], Part]) -> Array:
        if not any(isinstance(x, Node) for x in arrays):
            return super().joined(arrays, join)
        value = self.base.joined([self._plain(x) for x in arrays], join)
        starts = np.cumsum([0, *(int(np.prod(x.shape)) for x in arrays)])
        places = join([_numbered(x.shape) + start for x, start in zip(arrays, starts, strict=False)])

        def share(x: Array, start: int) -> tuple[Array, Pull]:
            return x, lambda g: self._gathered(g, places - start, x.shape)

        return self._node(value, *(share(x, int(start)) for x, start in zip(arrays, starts, strict=False)))

    # ---- arithmetic ----------------------------------------------------------------------------------------------------------
    def negative(self, x: Array) -> Array:
        return self._node(self.base.negative(self._plain(x)), (x, self.base.negative))

    def abs(self, x: Array) -> Array:
        value = self._plain(x)
        if not isinstance(x, Node):
            return self._node(self.base.abs(value))
        sign = self.base.slope(value, self.base.real(np.zeros(()), x.dtype)) * 2 - 1
        return self._node(self.base.abs(value), (x, lambda g: g * sign))

    def real_add(self, a: Array, b: Array, dtype: Label) -> Array:
        value = self.base.real_add(self._plain(a), self._plain(b), dtype)
        return self._elementwise(value, (a, lambda g: g), (b, lambda g: g))

    def real_multiply(self, a: Array, b: Array, dtype: Label) -> Array:
        p, q = self._plain(a), self._plain(b)
        return self._elementwise(self.base.real_multiply(p, q, dtype), (a, lambda g: g * q), (b, lambda g: g * p))

    def real_divide(self, a: Array, b: Array, dtype: Label) -> Array:
        p, q = self._plain(a), self._plain(b)
        ratio = self.base.real_divide(p, q, dtype)
        return self._elementwise(ratio, (a, lambda g: g / q), (b, lambda g: -(g * ratio / q)))

    def real_pow(self, a: Array, b: Array, dtype: Label) -> Array:
        p, q = self._plain(a), self._plain(b)
        power = self.base.real_pow(p, q, dtype)
        return self._elementwise(power, (a, lambda g: g * power * q / p), (b, lambda g: g * power * self.base.log(p)))

    def real_minimum(self, a: Array, b: Array, dtype: Label) -> Array:
        p, q = self._plain(a), self._plain(b)
        value = self.base.real_minimum(p, q, dtype)
        return self._elementwise(value, (a, lambda g: g * self.base.slope(q, p)), (b, lambda g: g * self.base.slope(p, q)))

    def real_maximum(self, a: Array, b: Array, dtype: Label) -> Array:
        p, q = self._plain(a), self._plain(b)
        value = self.base.real_maximum(p, q, dtype)
        return self._elementwise(value, (a, lambda g: g * self.base.slope(p, q)), (b, lambda g: g * self.base.slope(q, p)))

    def real_compare(self, name: str, a: Array, b: Array) -> Part:
        compared: Part = self.base.real_compare(name, self._plain(a), self._plain(b))
        return compared

    # ---- functions -----------------------------------------------------------------------------------------------------------
    def floor(self, x: Array) -> Array:
        """Return the largest integer not above x; its derivative is zero."""
        return self._node(self.base.floor(self._plain(x)))

    def ceil(self, x: Array) -> Array:
        """Return the smallest integer not below x; its derivative is zero."""
        return self._node(self.base.ceil(self._plain(x)))

    def saturated(self, x: Array, bits: int, least: int, largest: float, dtype: Label) -> Array:
        """Return the nearest number of a narrow format; its derivative is zero."""
        return self._node(self.base.saturated(self._plain(x), bits, least, largest, dtype))

    def sqrt(self, x: Array) -> Array:
        """Return the square root."""
        root = self.base.sqrt(self._plain(x))
        return self._node(root, (x, lambda g: g / (root * 2)))

    def exp(self, x: Array) -> Array:
        """Return e to the x."""
        power = self.base.exp(self._plain(x))
        return self._node(power, (x, lambda g: g * power))

    def log(self, x: Array) -> Array:
        """Return the natural logarithm."""
        value = self._plain(x)
        return self._node(self.base.log(value), (x, lambda g: g / value))

    def tanh(self, x: Array) -> Array:
        """Return the hyperbolic tangent."""
        result = self.base.tanh(self._plain(x))
        return self._node(result, (x, lambda g: g * (1.0 - result * result)))

    def log1p(self, x: Array) -> Array:
        """Return the natural logarithm of 1 + x."""
        value = self._plain(x)
        return self._node(self.base.log1p(value), (x, lambda g: g / (value + 1)))

    def sin(self, x: Array) -> Array:
        """Return the sine."""
        value = self._plain(x)
        return self._node(self.base.sin(value), (x, lambda g: g * self.base.cos(value)))

    def constant_sin(self, x: Array) -> Array:
        """Return the sine of a constant; its derivative is zero."""
        return self._node(self.base.constant_sin(self._plain(x)))

    def cos(self, x: Array) -> Array:
        """Return the cosine."""
        value = self._plain(x)
        return self._node(self.base.cos(value), (x, lambda g: -(g * self.base.sin(value))))

    def sin_pi(self, x: Array) -> Array:
        """Return the sine of pi x."""
        value = self._plain(x)
        return self._node(self.base.sin_pi(value), (x, lambda g: g * self.base.cos_pi(value) * self.base.pi))

    def cos_pi(self, x: Array) -> Array:
        """Return the cosine of pi x."""
        value = self._plain(x)
        return self._node(self.base.cos_pi(value), (x, lambda g: -(g * self.base.sin_pi(value) * self.base.pi)))

    def settled(self, x: Array) -> Array:
        """Return `x`, which code computes before it is used."""
        return self._node(self.base.settled(self._plain(x)), (x, lambda g: g))

    def either(self, a: Array, b: Callable[[], Array]) -> Array:
        """Return one of two formulas for the same numbers. Cotangents go through the one or, with `second`, the other."""
        self.alternatives = True
        if self.second:
            return b()
        return self._node(self.base.either(self._plain(a), lambda: self._plain(b())), (a, lambda g: g))

    def without(self, x: Array, w: Array, strength: Array, changed: Array) -> Array:
        """Return `changed`, x - strength (x . w) w, through which cotangents go as it is computed."""
        result = self.base.without(self._plain(x), self._plain(w), self._plain(strength), self._plain(changed))
        return self._node(result, (changed, lambda g: g))

    def cayley(self, x: Array, found: Array) -> Array:
        """Return the Cayley transforms `found` of skew-symmetric matrices."""
        value = self._plain(x)
        u = self.base.cayley(value, self._plain(found))
        return self._node(u, (x, lambda g: self.base.cayley_adjoint(u, value, g)))

    def skew_exponential(self, x: Array) -> Array:
        """Return the exponentials of skew-symmetric matrices."""
        value = self._plain(x)
        return self._node(self.base.skew_exponential(value), (x, lambda g: self.base.skew_exponential_adjoint(value, g)))

    # ---- reductions ----------------------------------------------------------------------------------------------------------
    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        total = self.base.sum(self._plain(x), axis=axis, keepdims=keepdims)
        return self._node(total, (x, lambda g: self._spread(g, x.shape, axis, keepdims)))

    def real_cumulative_sum(self, x: Array, axis: int) -> Array:
        def turned(g: Any) -> Any:
            return self.base.moved(g, lambda part: np.flip(part, axis=axis))

        total = self.base.cumulative_sum(self._plain(x), axis=axis)
        return self._node(total, (x, lambda g: turned(self.base.cumulative_sum(turned(g), axis=axis))))

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return the largest along `axis`."""
        value = self._plain(x)
        largest = self.base.max(value, axis=axis, keepdims=keepdims)

        return self._node(largest, (x, lambda g: self._spread(g, x.shape, axis, keepdims) * self._chosen(value, axis)))

    def _chosen(self, x: Array, axis: int) -> Any:
        """Return 1 where an element is the largest along `axis`, else 0, or everything between if undecided."""
        last = self.base.moved(x, lambda part: np.moveaxis(part, axis, -1))
        above = self.base.surely_greater(last[..., :, None], last[..., None, :])
        diagonal = np.eye(last.shape[-1], dtype=bool)
        only, beaten = np.all(above | diagonal, axis=-1), np.any(above, axis=-2)
        chosen = self.base.between(only.astype(np.float64), (~beaten).astype(np.float64), x.dtype)
        return self.base.moved(chosen, lambda part: np.moveaxis(part, -1, axis))

    def _spread(self, g: Array, shape: tuple[int, ...], axis: int, keepdims: bool) -> Any:
        """Return a reduction's cotangent, repeated for every element that was reduced."""
        kept = g if keepdims else self.base.moved(g, lambda part: np.expand_dims(part, axis))
        return self.base.broadcast_to(kept, shape)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product of the last two axes."""
        p, q = self._plain(a), self._plain(b)
        transposed = self.base.matrix_transpose

        def narrowed(x: Array, g: Array) -> Array:
            places = np.broadcast_to(_numbered(x.shape), g.shape)
            return g if x.shape == g.shape else self._gathered(g, places, x.shape)

        return self._node(
            self.base.matmul(p, q),
            (a, lambda g: narrowed(a, self.base.matmul(g, transposed(q)))),
            (b, lambda g: narrowed(b, self.base.matmul(transposed(p), g))),
        )


def _numbered(shape: tuple[int, ...]) -> Part:
    """Return the flat index of every element of an array of `shape`."""
    return np.arange(int(np.prod(shape))).reshape(shape)
