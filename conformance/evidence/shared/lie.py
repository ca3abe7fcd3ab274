"""Learned parameters and mistakes that LieRE and STRING share."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..tools import Case, floats, form_case, reals, seed_of
from ..tools.deviation import Deviation, Function, Real, Wrap, after, always, argument, around, narrowed, option
from ..tools.hints import (
    ALL_AXES,
    AXIS_ORDER,
    EACH_HEAD,
    EACH_ROW,
    EXPONENTIAL,
    FRACTIONS,
    FROM_ZERO,
    IGNORED,
    INTEGERS,
    KEEP_FLOAT32,
    TRIANGLE,
)
from .axial import exchanged, first_row
from .rotary import PLACES

IMAGES = "an image, a small one, one token of the first"


def learned(name: str, *shape: int, bits: int = 8, over: float = 8) -> npt.NDArray[np.float64]:
    """Return parameters of either sign."""
    return np.asarray(floats(*shape, seed=seed_of(name + "learned"), bits=bits) / over)


def in_rows(frames: Any) -> npt.NDArray[Any]:
    """Return positions of two rows, (axes, 2, 1, tokens), from those of one."""
    p = np.asarray(frames)
    return np.stack([p[:2], p[1:]], axis=1)[:, :, None]


def lie_case(
    op: str, parameter: str, name: str, x: tuple[int, ...], positions: Any, shape: tuple[int, ...],
    comment: str = "", *, bits: int = 8, over: float = 8, kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of liere or circulant_string."""
    inputs = {"x": floats(*x, seed=seed_of(op + name), bits=bits), "positions": positions}
    inputs[parameter] = learned(op + name, *shape, bits=bits, over=over)
    return Case(f"{op}/{name}", params, inputs, comment, kind, tier)


def matrix_forms(
    op: str, parameter: str, last: tuple[int, ...], *, x: bool = True, skew: bool = False, **options: Any
) -> tuple[Case, ...]:
    """Return the forms of x, if there is one, and of a learned parameter whose last axes are of one block of all lanes."""

    def case(
        name: str, shape: tuple[int, ...], positions: Any, heads: tuple[int, ...] = (), comment: str = "", form: str = ""
    ) -> Case:
        arrays: dict[str, Any] = {"x": reals(op + name, *shape)} if x else {}
        arrays["positions"] = np.asarray(positions, dtype=np.int64)
        if skew:
            arrays["skew"] = reals(op + name + "skew", *((*shape[:-2], 1) if heads else ()), shape[-1], shape[-1]) / 8
        arrays[parameter] = reals(op + name + parameter, 2, *heads, *last) / 8
        return form_case(op, name, arrays, options, comment, form=form)

    rows = np.asarray([[row[:2]] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)  # axes, images, 1, tokens
    return (
        case("strided", (2, 3, 4, 3), rows, (1, 3, 1), "heads before tokens", form="non-contiguous"),
        case("length-one", (1, 3, 1, 3), rows[:, :1, :, 1:2], (1, 3, 1)),
        case("length-zero", (2, 0, 3), np.zeros((2, 0)), (2, 1)),
    )


Change = Callable[[Any], Any]


def _of_both(positions: Change | None = None, learned: Change | None = None) -> dict[str, Wrap]:
    """Return wraps that change the positions, or the parameters, of LieRE and of Circulant-STRING."""
    if positions is not None:
        return {"liere_rotations": argument(0, positions), "circulant_string": argument(1, positions)}
    assert learned is not None
    return {"liere_rotations": argument(1, learned), "circulant_string": argument(2, learned)}


def transposed(x: Real) -> Real:
    """Return matrices transposed."""
    return np.swapaxes(x, -1, -2)


def skew_symmetric(x: Real) -> Real:
    """Return the skew-symmetric matrices of upper triangles."""
    upper = np.triu(x, 1)
    return upper - transposed(upper)


def exponent(positions: Real, generators: Real) -> Real:
    """Return the sum of coordinates times skew-symmetric matrices."""
    p, g = np.asarray(positions, dtype=np.float64), skew_symmetric(np.asarray(generators, dtype=np.float64))
    rows = max(p.ndim, g.ndim - 3)
    p = p.reshape(p.shape[0], *(1,) * (rows - p.ndim), *p.shape[1:], 1, 1, 1)
    return np.sum(p * g.reshape(g.shape[0], *(1,) * (rows + 3 - g.ndim), *g.shape[1:]), axis=0)


def other_exponential(change: Callable[[Real], Real]) -> dict[str, Wrap]:
    """Return a wrap that computes LieRE's rotations by another function of the exponent."""
    return {"liere_rotations": after(lambda out, p, g, /, **rest: change(exponent(p, g)))}


def _first_order(a: Real) -> Real:
    return np.eye(a.shape[-1]) + a


def _heads_of(trailing: int) -> Change:
    """Return a change to the first head's parameters, which have `trailing` axes after those of heads."""

    def change(x: Real) -> Real:
        return np.broadcast_to(x[:, *(slice(0, 1),) * (x.ndim - 1 - trailing)], x.shape) if x.ndim > 1 + trailing else x

    return change


def _first_of(axis: int) -> Change:
    """Return a change to the parameters of the first block."""
    return lambda x: np.broadcast_to(np.take(x, [0], axis=axis), x.shape)


def _lanes(
    op: str, trailing: int, change: Callable[[Real, int, int], Real], back: Callable[[Real, int, int], Real]
) -> dict[str, Wrap]:
    """Return a wrap that reorders the lanes of x before, and those of the result after, given blocks and their size."""

    def deviating(function: Function, x: Any, positions: Any, learned: Any, /, **options: Any) -> Any:
        blocks, n = learned.shape[-trailing], learned.shape[-1]
        return back(function(change(np.asarray(x), blocks, n), positions, learned, **options), blocks, n)

    return {op: around(deviating)}


def _strided(x: Real, blocks: int, n: int) -> Real:
    """Return lanes in which each block takes every `blocks`-th one."""
    lanes = np.arange(blocks * n).reshape(n, blocks).T.ravel()
    return np.concatenate([x[..., lanes], x[..., blocks * n :]], axis=-1)


def _unstrided(x: Real, blocks: int, n: int) -> Real:
    return np.concatenate([x[..., np.arange(blocks * n).reshape(blocks, n).T.ravel()], x[..., blocks * n :]], axis=-1)


def _of_lanes(change: Callable[[Real, int, int], Real], back: Callable[[Real, int, int], Real]) -> dict[str, Wrap]:
    return _lanes("liere", 3, change, back) | _lanes("circulant_string", 2, change, back)


def _added(x: Real, positions: Any, c: Real, /, *, inverse: bool = False) -> Real:
    """Return x plus the exponent's product with it: the exponential to first order."""
    n, blocks = c.shape[-1], c.shape[-2]
    i, j = np.ogrid[:n, :n]
    matrices = c[..., (i - j) % n]  # whose upper triangle tells the difference with the transpose
    a = exponent(positions, matrices - transposed(matrices))
    a = transposed(a) if inverse else a
    lanes = x[..., : blocks * n].reshape(*x.shape[:-1], blocks, n, 1)
    moved = (lanes + a @ lanes).reshape(*x.shape[:-1], blocks * n)
    return np.concatenate([moved, x[..., blocks * n :]], axis=-1)


DEVIATIONS = (
    Deviation("lie-first-order", "the exponential is replaced by the identity plus the exponent",
              other_exponential(_first_order) | {"circulant_string": after(lambda out, *args, **rest: _added(*args, **rest))},
              hint=EXPONENTIAL),
    Deviation("lie-halved", "the matrix less its transpose is halved", _of_both(learned=lambda g: g / 2), hint=TRIANGLE),
    Deviation("lie-exchanged", "the matrices of the first and the last axis are exchanged", _of_both(learned=exchanged(0, -1)),
              hint=AXIS_ORDER),
    Deviation("lie-first-axis", "tokens rotate with the first axis alone",
              _of_both(learned=lambda x: np.concatenate([x[:1], 0 * x[1:]])), hint=ALL_AXES),
    Deviation("lie-first-head", "the matrices of the first head are used for every head",
              {"liere_rotations": argument(1, _heads_of(3)), "circulant_string": argument(2, _heads_of(2))}, hint=EACH_HEAD),
    Deviation("lie-first-block", "the matrix of the first block is used for every block",
              {"liere_rotations": argument(1, _first_of(-3)), "circulant_string": argument(2, _first_of(-2))},
              hint="Each block has a matrix of its own: look for an index [0]."),
    Deviation("lie-first-row", "the first row's positions are used for every row", _of_both(positions=first_row),
              hint=EACH_ROW),
    Deviation("lie-one-based", "cells are counted from one", _of_both(positions=lambda p: p + 1), hint=FROM_ZERO),
    Deviation("lie-whole-numbers", "coordinates are truncated to integers", _of_both(positions=np.trunc), hint=FRACTIONS),
    Deviation("lie-positions-bfloat16", "positions are held in bfloat16", _of_both(positions=narrowed("bfloat16")),
              hint=INTEGERS),
    Deviation("lie-bfloat16", "learned matrices are held in bfloat16", _of_both(learned=narrowed("bfloat16")),
              hint=KEEP_FLOAT32),
    Deviation("lie-inverse-ignored", "the inverse rotates forward",
              {op: option(inverse=always(False)) for op in ("liere", "circulant_string")}, hint=IGNORED),
    Deviation("lie-strided", "a block takes every G-th channel, not n channels in a row", _of_lanes(_strided, _unstrided),
              hint="A block is n channels in a row: compare the reshape, (blocks, n)."),
    Deviation("lie-trailing", "the last channels rotate where the first should",
              _of_lanes(lambda x, blocks, n: np.roll(x, blocks * n, -1), lambda x, blocks, n: np.roll(x, -blocks * n, -1)),
              hint="The first channels rotate: compare the slice."),
)  # fmt: skip
