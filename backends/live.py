"""
Live bounds: error bounds whose values come from NumPy, fast enough to check any call at once.

All else is as in `posref.backends.bounds`. In class float64 the bounds say how far the values may be from the true ones,
because NumPy is one of the implementations that they cover. Sums run in a fixed order here too, so a few rows computed alone
have the same bits as among all rows.
"""

from __future__ import annotations

import numpy as np

from .bounds import Bounds, Sensitivity, odd, waives
from .fused import Fused, Scalars
from .mixed import Mixed
from .numbers import Array, Label, Part
from .roundoffs import CLASSES, ROUNDOFFS


class FromNumPy(Bounds):
    """Bounds with NumPy's elementary functions, and matrix products that do not store every single product."""

    def elementary(self, name: str, *parts: Part) -> Part:
        """Return an elementary function of NumPy float64."""
        if name.endswith("_pi"):
            name, parts = name.removesuffix("_pi"), (np.pi * (parts[0] - 2 * np.round(parts[0] / 2)),)
        function = np.power if name == "pow" else getattr(np, name)
        with np.errstate(all="ignore"):
            return np.asarray(function(*(np.asarray(part, order="C") for part in parts)), dtype=np.float64)

    def of_matrices(self, name: str, *parts: Part) -> Part:
        """Return a function of skew-symmetric matrices A, from the eigenvectors of the Hermitian matrix -iA."""
        values, vectors = np.linalg.eigh(-1j * parts[0])  # A = V diag(i w) V^H
        back = np.conj(np.swapaxes(vectors, -1, -2))
        power = np.exp(1j * values)
        if name == "exponential":
            return np.asarray(((vectors * power[..., None, :]) @ back).real)
        first, second = power[..., :, None], power[..., None, :]
        apart = 1j * (values[..., :, None] - values[..., None, :])
        near = np.abs(apart) < 1e-4
        with np.errstate(all="ignore"):
            slopes = np.where(near, second * (1 + apart / 2 + apart**2 / 6), (first - second) / np.where(near, 1, apart))
        return np.asarray((vectors @ (slopes * (back @ parts[1] @ vectors)) @ back).real)

    def matmul(self, a: Array, b: Array) -> Array:
        """
        Return the matrix product.

        Each product counts as rounded, and so does their sum. A single product is exact if it is representable.
        """
        (p, e, u), (q, f, w) = a.parts, b.parts
        if not (np.isfinite(p).all() and np.isfinite(q).all()):
            return super().matmul(a, b)  # it handles infinities
        dtype = self.result_type(a.dtype, b.dtype)
        unit, floor = self._unit(dtype), self.accuracy.floor
        value, size, errors = _products(p, e, q, f)
        waived = _products(p, u, q, w)[2] if waives(u) or waives(w) else np.zeros(value.shape)
        terms = _counted((p != 0) | (e != 0)) @ _counted((q != 0) | (f != 0))
        shows = bool((terms * floor > 2.0**-53 * unit * size).any())
        rounded = terms - self._free_products(a, b, dtype) if shows else terms
        error = errors + waived + unit * (size + errors) + rounded * floor
        summed = error + ROUNDOFFS["sum, times the terms' sum"].units * terms * unit * (size + error) + floor
        error = np.where(terms > 1, summed, error)
        single = (terms <= 1) & (errors == 0)
        if not single.any():
            return self.array(value, error, dtype)
        free = single & (odd(p) @ odd(q) < 2.0**53) & self._fits(value, dtype)
        free &= (value == 0) | (np.abs(value) >= self.accuracy.normal)
        idle = _counted(odd(p) > 1) @ _counted(odd(q) > 1) == 0
        waived = np.where(free, waived + np.where(idle, 0.0, unit * size), 0.0)
        return self.array(value, np.where(free, 0.0, error), dtype, waived)

    def _free_products(self, a: Array, b: Array, dtype: Label) -> Part:
        """Return how many products of each sum are not zero, and exact and representable."""
        (p, e, _), (q, f, _) = a.parts, b.parts
        few = [np.where((x != 0) & (error == 0), odd(x), np.inf) for x, error in ((p, e), (q, f))]
        p, few[0], q, few[1] = _alike(p, few[0], q, few[1])
        count = np.zeros((*p.shape[:-1], q.shape[-1]))
        most, normal = 2.0 ** self.bits[dtype], self.accuracy.normal
        with np.errstate(over="ignore"):
            for k in range(p.shape[-1]):
                row, column = (..., slice(k, k + 1)), (..., slice(k, k + 1), slice(None))
                count += (few[0][row] * few[1][column] < most) & (np.abs(p[row] * q[column]) >= normal)
        return count


class Live(FromNumPy):
    """The namespace of (value, bound) for one accuracy class, computed by NumPy."""

    __name__ = "posref.backends.live"


class LiveSensitivity(FromNumPy, Sensitivity):
    """The namespace of (value, how far it moves with the errors of sines and cosines), computed by NumPy."""

    __name__ = "posref.backends.live"


class LiveFused(Fused, FromNumPy):
    """The namespace of class fused, computed by NumPy."""

    __name__ = "posref.backends.live"


class LiveMixed(Mixed, FromNumPy):
    """The namespace of class mixed, computed by NumPy."""

    __name__ = "posref.backends.live"


class LiveScalars(Scalars, FromNumPy):
    """The namespace of (value, how far it moves with the roundings of scalars), computed by NumPy."""

    __name__ = "posref.backends.live"


def live(name: str) -> FromNumPy:
    """Return the live namespace of the accuracy class called `name`. For fused kernels the name ends in the dtype."""
    kind, _, dtype = name.partition("-")
    of_half = {"fused": LiveFused, "mixed": LiveMixed}
    return of_half[kind](dtype) if kind in of_half else Live(CLASSES[name])


def _counted(present: Part) -> Part:
    """Return ones and zeros whose products count exactly."""
    return present.astype(np.float32)


def _alike(*matrices: Part) -> list[Part]:
    """Return stacks of matrices, all with the same leading axes."""
    leads = {x.shape[:-2] for x in matrices}
    if len(leads) == 1:
        return [*matrices]
    lead = np.broadcast_shapes(*leads)
    return [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in matrices]


def _products(p: Part, e: Part, q: Part, f: Part) -> tuple[Part, Part, Part]:
    """Return p q, |p| |q|, and the error of p q if p has error e and q has error f. Sums run in the order of their terms."""
    p, e, q, f = _alike(p, e, q, f)
    lead = p.shape[:-2]
    shape = (*lead, p.shape[-2], q.shape[-1])
    value, size, errors = (np.zeros(shape) for _ in range(3))
    together = p.shape[-2] * q.shape[-1] < CACHED
    for i in [()] if together else np.ndindex(lead):
        _accumulate(p[i], e[i], q[i], f[i], value[i], size[i], errors[i])
    return value, size, errors


CACHED = 1 << 12  # from this size on, products are summed one matrix at a time


def _accumulate(p: Part, e: Part, q: Part, f: Part, value: Part, size: Part, own: Part) -> None:
    """Add the products of matrices p and q, with errors e and f, to `value`, their sizes to `size`, their errors to `own`."""
    terms, outer = p.ndim - 1, range(p.ndim - 2)

    def rows(x: Part) -> Part:
        return np.ascontiguousarray(x.transpose(terms, *outer, terms - 1))[..., None]

    def columns(x: Part) -> Part:
        return np.ascontiguousarray(x.transpose(terms - 1, *outer, terms))[..., None, :]

    factors = [(rows(p), columns(q))]
    factors += [(rows(np.abs(p)), columns(f))] if f.any() else []
    factors += [(rows(e), columns(np.abs(q) + f))] if e.any() else []
    product = np.empty_like(value)
    for (row, column), *errors in zip(*([*zip(*pair, strict=True)] for pair in factors), strict=True):
        value += np.multiply(row, column, out=product)
        size += np.abs(product, out=product)
        for error, by in errors:
            own += np.multiply(error, by, out=product)
