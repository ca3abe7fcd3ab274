"""Deviations of rotations of many lanes at once, by learned matrices: LieRE and STRING."""

from collections.abc import Callable
from typing import Any

import numpy as np

from posref.core.matrices import skew_exponential

from .axes import _exchanged, _first_row
from .compose import Deviation, Function, Real, Wrap, after, always, argument, narrowed, option

Change = Callable[[Any], Any]


def _of_both(positions: Change | None = None, learned: Change | None = None) -> dict[str, Wrap]:
    """Return wraps that change the positions, or the parameters, of LieRE and of Circulant-STRING."""
    if positions is not None:
        return {"liere_rotations": argument(0, positions), "circulant_string": argument(1, positions)}
    assert learned is not None
    return {"liere_rotations": argument(1, learned), "circulant_string": argument(2, learned)}


def _turned(x: Real) -> Real:
    """Return matrices transposed."""
    return np.swapaxes(x, -1, -2)


def _upper(x: Real) -> Real:
    """Return the skew-symmetric matrices of upper triangles."""
    upper = np.triu(x, 1)
    return upper - _turned(upper)


def _exponent(positions: Real, generators: Real) -> Real:
    """Return the sum of coordinates times skew-symmetric matrices."""
    p, g = np.asarray(positions, dtype=np.float64), _upper(np.asarray(generators, dtype=np.float64))
    rows = max(p.ndim, g.ndim - 3)
    p = p.reshape(p.shape[0], *(1,) * (rows - p.ndim), *p.shape[1:], 1, 1, 1)
    return np.sum(p * g.reshape(g.shape[0], *(1,) * (rows + 3 - g.ndim), *g.shape[1:]), axis=0)


def _instead(change: Callable[[Real], Real]) -> dict[str, Wrap]:
    """Return a wrap that computes LieRE's rotations by another function of the exponent."""
    return {"liere_rotations": after(lambda out, p, g, /, **rest: change(_exponent(p, g)))}


def _first_order(a: Real) -> Real:
    return np.eye(a.shape[-1]) + a


def _cayley_of(a: Real) -> Real:
    """Return the Cayley transform that is the exponential to second order."""
    return np.linalg.solve(np.eye(a.shape[-1]) - a / 2, np.eye(a.shape[-1]) + a / 2)


def _by_axis(out: Real, p: Real, g: Real, /, **rest: Any) -> Real:
    """Return the product of the exponentials of every axis, the first one leftmost."""
    found = skew_exponential(_exponent(p[:1], g[:1]))
    for a in range(1, len(p)):
        found = found @ skew_exponential(_exponent(p[a : a + 1], g[a : a + 1]))
    return found


def _heads_of(trailing: int) -> Change:
    """Return a change to the first head's parameters, which have `trailing` axes after those of heads."""

    def change(x: Real) -> Real:
        return np.broadcast_to(x[:, *(slice(0, 1),) * (x.ndim - 1 - trailing)], x.shape) if x.ndim > 1 + trailing else x

    return change


def _first_matrix(x: Real) -> Real:
    return np.broadcast_to(x[(slice(0, 1),) * (x.ndim - 2)], x.shape) if x.size else x


def _first_of(axis: int) -> Change:
    """Return a change to the parameters of the first block."""
    return lambda x: np.broadcast_to(np.take(x, [0], axis=axis), x.shape)


def _only_first_axis(x: Real) -> Real:
    return np.concatenate([x[:1], 0 * x[1:]])


def _lanes(
    op: str, trailing: int, change: Callable[[Real, int, int], Real], back: Callable[[Real, int, int], Real]
) -> dict[str, Wrap]:
    """Return a wrap that reorders the lanes of x before, and those of the result after, given blocks and their size."""

    def wrap(function: Function) -> Function:
        def deviating(x: Any, positions: Any, learned: Any, /, **options: Any) -> Any:
            blocks, n = learned.shape[-trailing], learned.shape[-1]
            return back(function(change(np.asarray(x), blocks, n), positions, learned, **options), blocks, n)

        return deviating

    return {op: wrap}


def _strided(x: Real, blocks: int, n: int) -> Real:
    """Return lanes of which every block had each `blocks`-th."""
    lanes = np.arange(blocks * n).reshape(n, blocks).T.ravel()
    return np.concatenate([x[..., lanes], x[..., blocks * n :]], axis=-1)


def _unstrided(x: Real, blocks: int, n: int) -> Real:
    return np.concatenate([x[..., np.arange(blocks * n).reshape(blocks, n).T.ravel()], x[..., blocks * n :]], axis=-1)


def _of_lanes(change: Callable[[Real, int, int], Real], back: Callable[[Real, int, int], Real]) -> dict[str, Wrap]:
    return _lanes("liere", 3, change, back) | _lanes("circulant_string", 2, change, back)


def _reversed(c: Real) -> Real:
    """Return coefficients of the transposed circulant matrices."""
    return c[..., -np.arange(c.shape[-1])]


def _added(x: Real, positions: Any, c: Real, /, *, inverse: bool = False) -> Real:
    """Return x plus the exponent's product with it: the exponential to first order."""
    n, blocks = c.shape[-1], c.shape[-2]
    i, j = np.ogrid[:n, :n]
    matrices = c[..., (i - j) % n]  # whose upper triangle tells the difference with the transpose
    a = _exponent(positions, matrices - _turned(matrices))
    a = _turned(a) if inverse else a
    lanes = x[..., : blocks * n].reshape(*x.shape[:-1], blocks, n, 1)
    moved = (lanes + a @ lanes).reshape(*x.shape[:-1], blocks * n)
    return np.concatenate([moved, x[..., blocks * n :]], axis=-1)


def _after_rope(function: Function) -> Function:
    """Change the basis of what RoPE gives, where its argument's is changed."""

    def deviating(x: Real, positions: Any, skew: Real, frequencies: Real, /, *, form: str) -> Real:
        if form != "product":
            return function(x, positions, skew, frequencies, form=form)
        conjugated = function(_times(skew, x), positions, skew, frequencies, form="conjugate")  # P RoPE P^T P x
        return np.asarray(conjugated)

    return deviating


def _times(skew: Real, x: Real) -> Real:
    s = _upper(skew)
    one = np.eye(s.shape[-1])
    return ((one - s) @ np.linalg.inv(one + s) @ x[..., None])[..., 0]


def _exponential_basis(out: Real, skew: Real, /, **rest: Any) -> Real:
    return skew_exponential(-2 * _upper(np.asarray(skew, dtype=np.float64)))


DEVIATIONS = (
    Deviation("lie-transposed", "the rotations are transposed: x R in place of R x, or signs exchanged",
              {"liere_rotations": after(lambda out, *args, **rest: _turned(out))},
              "Compute R x for a column of channels, with the upper triangle as it is."),
    Deviation("lie-full", "the transpose of the whole matrix is subtracted, not of its upper triangle",
              {"liere_rotations": argument(1, lambda g: g - _turned(g))}, "triu(diagonal=1) comes first."),
    Deviation("lie-lower", "the parameter fills the lower triangle, its negative the upper one",
              {"liere_rotations": argument(1, lambda g: -_turned(g))},
              hint="The parameter stands above the diagonal, its negative below."),
    Deviation("lie-by-axis", "axes rotate one after another, in place of the exponential of the sum",
              {"liere_rotations": after(_by_axis)}, "The two agree only where generators commute."),
    Deviation("lie-first-order", "the exponential is replaced by the identity plus the exponent",
              _instead(_first_order) | {"circulant_string": after(lambda out, *args, **rest: _added(*args, **rest))}),
    Deviation("lie-cayley", "the exponential is replaced by a Cayley transform, equal to second order", _instead(_cayley_of)),
    Deviation("lie-halved", "the matrix less its transpose is halved", _of_both(learned=lambda g: g / 2)),
    Deviation("lie-exchanged", "the matrices of the first and the last axis are exchanged",
              _of_both(learned=_exchanged(0, -1))),
    Deviation("lie-first-axis", "tokens rotate with the first axis alone", _of_both(learned=_only_first_axis)),
    Deviation("lie-first-head", "the matrices of the first head are used for every head",
              {"liere_rotations": argument(1, _heads_of(3)), "circulant_string": argument(2, _heads_of(2))}),
    Deviation("lie-first-block", "the matrix of the first block is used for every block",
              {"liere_rotations": argument(1, _first_of(-3)), "circulant_string": argument(2, _first_of(-2))},
              hint="Each block has a matrix of its own: look for an index [0]."),
    Deviation("lie-first-row", "the first row's positions are used for every row", _of_both(positions=_first_row)),
    Deviation("lie-one-based", "cells are counted from one", _of_both(positions=lambda p: p + 1)),
    Deviation("lie-whole-numbers", "coordinates are truncated to integers", _of_both(positions=np.trunc)),
    Deviation("lie-positions-bfloat16", "positions are held in bfloat16", _of_both(positions=narrowed("bfloat16"))),
    Deviation("lie-bfloat16", "learned matrices are held in bfloat16", _of_both(learned=narrowed("bfloat16"))),
    Deviation("lie-inverse-ignored", "the inverse rotates forward",
              {op: option(inverse=always(False)) for op in ("liere", "circulant_string")}),
    Deviation("lie-strided", "a block takes every G-th channel, not n channels in a row", _of_lanes(_strided, _unstrided),
              hint="A block is n channels in a row: compare the reshape, (blocks, n)."),
    Deviation("lie-trailing", "the last channels rotate where the first should",
              _of_lanes(lambda x, blocks, n: np.roll(x, blocks * n, -1), lambda x, blocks, n: np.roll(x, -blocks * n, -1)),
              hint="The first channels rotate: compare the slice."),
    Deviation("string-transposed", "the basis is transposed: (I + S)(I - S)^-1", {"cayley": argument(0, lambda s: -s)},
              "PyTorch's orthogonal() takes the lower triangle, with the other sign."),
    Deviation("string-halved", "the parameter is halved", {"cayley": argument(0, lambda s: s / 2)},
              "PyTorch's orthogonal() has (I - A/2)^-1 (I + A/2)."),
    Deviation("string-full", "the transpose of the whole matrix is subtracted, not of its upper triangle",
              {"cayley": argument(0, lambda s: s - _turned(s))}),
    Deviation("string-exponential", "the basis is an exponential, equal to second order",
              {"cayley": after(_exponential_basis)}),
    Deviation("string-one-factor", "the inverse factor is left out: the basis is I - S",
              {"cayley": after(lambda out, s, /, **rest: np.eye(s.shape[-1]) - _upper(s))}),
    Deviation("string-unlearned", "the basis is left out: only RoPE-Mixed remains", {"cayley": argument(0, lambda s: 0 * s)},
              hint="Multiply by the learned basis before the rotation."),
    Deviation("string-first-head", "the basis of the first head is used for every head", {"cayley": argument(0, _first_matrix)}),
    Deviation("string-bfloat16", "the basis's parameter is held in bfloat16", {"cayley": argument(0, narrowed("bfloat16"))}),
    Deviation("string-conjugate", "the basis is changed twice where once is asked for",
              {"cayley_string": option(form=always("conjugate"))}),
    Deviation("string-product", "the basis is changed once where twice is asked for",
              {"cayley_string": option(form=always("product"))}),
    Deviation("string-after", "the basis is changed after the rotation, not before it", {"cayley_string": _after_rope},
              "Of P RoPE P^T, the factor that remains is P^T, on the right."),
    Deviation("circulant-row", "coefficients are the first row, where they are the first column",
              {"circulant_string": argument(2, _reversed)},
              "One gives the inverse of the other."),
)  # fmt: skip
