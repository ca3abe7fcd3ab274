"""Buckets of image RPE. Source: Wu et al., arXiv:2107.14222, section 3.2, equation (18), and the authors' code."""

from math import ceil, floor, isqrt, log
from typing import Literal, get_args

from posref.core.arrays import Array, beside, clipped, distances, library, namespace, whole
from posref.core.checks import check_broadcast, check_mask, check_positive, check_word
from posref.spec import Axes, OneOf, Real, encoding, part
from posref.types import AnyArray, ArrayOf, T

Method = Literal["euclidean", "quant", "product", "cross_rows", "cross_cols"]
METHODS: tuple[Method, ...] = get_args(Method)
LARGEST = 16384  # squared distances up to twice its square fit into 32 bits
TIE = 2.0**-36  # nearer to a half than any rounding error of the logarithms


@encoding(
    title="Image relative position encoding (iRPE)",
    idea=(
        "Two cells of an image are some rows and columns apart. Each short offset has a bucket of its own, and longer ones "
        "share buckets that get wider and wider. Five methods make one bucket of two offsets: from the distance, its square, "
        "both offsets together, or either of them."
    ),
    family="bias",
    source="arXiv:2107.14222, equation (18)",
    models=("DeiT with iRPE", "DETR with iRPE", "Mini-DeiT"),
    domains={
        "method": OneOf(METHODS),
        "alpha": Real(0.0, usual=(0.5, 3.0)),
        "beta": Real(0.0, usual=(3.5, 8.0)),
        "gamma": Real(0.0, usual=(8.5, 40.0)),
    },
    arrays={
        "q_positions": Axes("2 ~*B Q", "integer"),
        "k_positions": Axes("2 ~*B K", "integer"),
        "cells": Axes("~*B ~Q ~K", "mask", optional=True),
    },
    result="*B Q K",
    rows="*B Q K",
    requires=("alpha < beta", "alpha < gamma", f"beta <= {LARGEST}", f"gamma <= {LARGEST}"),
    returns="integer",
    noun="buckets",
    invariants=("shift invariant", "decode"),
    read={
        "DeiT with iRPE": "microsoft/Cream@4a13c40, iRPE/DeiT-with-iRPE/irpe.py:18-411",
        "DETR with iRPE": "microsoft/Cream@4a13c40, iRPE/DETR-with-iRPE/models/rpe_attention/irpe.py:18-411",
        "Mini-DeiT": "microsoft/Cream@4a13c40, MiniViT/Mini-DeiT/mini_deit_models.py:11-18",
    },
)
def irpe_buckets(
    q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, method: Method, alpha: float, beta: float, gamma: float,
    cells: AnyArray | None = None,
) -> T:  # fmt: skip
    r"""
    Return the bucket of every pair of cells of an image: a row of a learned table of biases or of vectors.

    .. math::

        g(x) = x \text{ for } |x| \le \alpha, \qquad g(x) = \operatorname{sign}(x) \min\left(b, \left[ \alpha +
        \frac{\ln(|x|/\alpha)}{\ln(\gamma/\alpha)} (\beta - \alpha) \right] \right) \text{ otherwise}

    where b is `beta` rounded down, and square brackets round to the nearest integer, halves to the even one. With
    :math:`\Delta_y` and :math:`\Delta_x`, the row and the column of the query minus those of the key, the bucket is

    .. math::

        & g([\sqrt{\Delta_y^2 + \Delta_x^2}]) + b && \text{euclidean} \\
        & g(\Delta_y^2 + \Delta_x^2) + b && \text{quant} \\
        & (g(\Delta_y) + b)(2b + 1) + g(\Delta_x) + b && \text{product} \\
        & g(\Delta_y) + b, \quad g(\Delta_x) + b && \text{cross\_rows, cross\_cols}

    Parameters
    ----------
    q_positions : array, integer, shape ``(2, *B, Q)``
        Rows and columns of the queries' cells, as `posref.positions.grid` gives them.
    k_positions : array, integer, shape ``(2, *B, K)``
        Rows and columns of the keys' cells.
    method : {"euclidean", "quant", "product", "cross_rows", "cross_cols"}
        How two offsets make one bucket.

        - ``"euclidean"``: By the distance, rounded. All directions are alike.
        - ``"quant"``: By the squared distance, not rounded, so that near distances are told apart. All directions are alike.
        - ``"product"``: By both offsets, one bucket for each pair of theirs. Used by DeiT with iRPE, Mini-DeiT.
        - ``"cross_rows"``: By the rows alone. The cross method adds two tables, one for rows and one for columns.
        - ``"cross_cols"``: By the columns alone.
    alpha : float
        α: offsets up to it have buckets of their own. In the authors' models 1.9 for "product", 20 for "euclidean" and for
        both of cross, 33 for "quant".
    beta : float
        β, above α and at most 16384: the largest bucket on one side, rounded down. 2α in the authors' models: b is 3 for
        α = 1.9.
    gamma : float
        γ, above α and at most 16384: offsets from about it on share the last bucket. 8α in the authors' models.
    cells : array, boolean, broadcasts to ``(*B, Q, K)``, optional
        True where the query and the key are both cells. All other pairs share one more bucket, the last: those with a class
        token, which may have any coordinates (``with_origin(grid(14, 14), tokens_before=1)``). None means everywhere.

    Returns
    -------
    array, default integer dtype, shape ``(*B, Q, K)``
        Between 0 and ``(2 * b + 1) ** 2 - 1`` for "product", and between 0 and 2b for the others. One more with `cells`.

    Raises
    ------
    ValueError
        If positions are not integers or not of shape (2, ..., tokens), `cells` is not boolean or does not fit, a coefficient is
        out of its range, or `method` is unknown.

    Notes
    -----
    posref decides with integers: an offset is in bucket n or above from some whole number on. It takes logarithms in binary64
    to find that number, and takes what is within 2^-36 of a half for a half. The paper's "quant" ranks the distances; the
    authors' code has the squared distance. That code takes logarithms and roots in float32, which gives the same buckets for
    all offsets of grids up to 64 by 64 with the options of its models. For "euclidean" and "quant" the first b rows of the
    table are never read. A bias is added to the logits: an entry for each head and bucket (``mode="bias"``), or the product of
    the query, or the key, with a vector for each bucket (``mode="contextual"``). On values the vectors are weighted and summed.

    Examples
    --------
    >>> import numpy as np
    >>> from posref.positions import grid
    >>> cells = grid(3, 4)
    >>> irpe_buckets(cells[:, :1], cells, method="product", alpha=1.9, beta=3.8, gamma=15.2).tolist()
    [[24, 23, 22, 22, 17, 16, 15, 15, 10, 9, 8, 8]]
    >>> irpe_buckets(cells[:, :1], cells, method="euclidean", alpha=1.9, beta=3.8, gamma=15.2)[0, :8].tolist()
    [3, 4, 5, 5, 4, 4, 5, 5]
    """
    name = "irpe_buckets"
    check_word(name, "method", method, METHODS)
    alpha, beta, gamma = (check_positive(name, *of) for of in (("alpha", alpha), ("beta", beta), ("gamma", gamma)))
    if not (alpha < beta <= LARGEST and alpha < gamma <= LARGEST):
        msg = f"{name}: alpha must be below beta and gamma, and these at most {LARGEST}; got {alpha}, {beta} and {gamma}."
        raise ValueError(msg)
    for argument, p in (("q_positions", q_positions), ("k_positions", k_positions)):
        library(name, **{argument: p})
        if p.ndim < 2 or p.shape[0] != 2:
            msg = f"{name}: {argument} must be (2, ..., tokens), rows and columns of cells; got shape {tuple(p.shape)}."
            raise ValueError(msg)
    check_broadcast(name, "q_positions and k_positions", q_positions.shape[1:-1], k_positions.shape[1:-1])
    q, k = whole(name, "q_positions", q_positions), whole(name, "k_positions", k_positions)
    rows, columns = (distances(q[axis, ...], k[axis, ...]) for axis in (0, 1))
    first = thresholds(alpha, beta, gamma)
    buckets = image_buckets(rows, columns, first, method)
    if cells is None:
        return buckets
    xp = library(name, q_positions=q_positions, k_positions=k_positions, cells=cells)
    check_mask(name, "cells", cells, "query and key are both cells", "pairs", buckets.shape)
    last = (2 * len(first) + 1) ** (2 if method == "product" else 1)
    return xp.where(cells, buckets, beside(last, buckets, buckets.dtype))


def thresholds(alpha: float, beta: float, gamma: float, /) -> list[int]:
    """Return the smallest whole number in each bucket from 1 to `beta`."""
    return [n if n <= alpha else _first_in(n, alpha, beta, gamma) for n in range(1, floor(beta) + 1)]


def _first_in(bucket: int, alpha: float, beta: float, gamma: float) -> int:
    """Return the smallest whole number above `alpha` that is in a bucket or above it: the formula grows."""
    low, high = floor(alpha) + 1, max(ceil(gamma), floor(alpha) + 1)
    while low < high:
        middle = (low + high) // 2
        if _nearest(alpha + log(middle / alpha) / log(gamma / alpha) * (beta - alpha)) >= bucket:
            high = middle
        else:
            low = middle + 1
    return low


def _nearest(x: float) -> int:
    """Return the integer nearest to `x`, of two equally near ones the even one."""
    below = floor(x)
    over = x - below - 0.5
    return below + below % 2 if abs(over) <= TIE else below + (over > 0)


def image_buckets(rows: Array, columns: Array, first: list[int], method: Method, /) -> Array:
    """Return the bucket of every pair of offsets, from the smallest number in each bucket."""
    if method in ("euclidean", "quant"):
        reach = max(first, default=0) if method == "euclidean" else isqrt(max(first, default=0)) + 1
        y, x = (clipped(of, -reach, reach) for of in (rows, columns))  # farther ones are in the last bucket, and may overflow
        squares = [n * n - n + 1 for n in first] if method == "euclidean" else first  # n > 0 is the rounded root from there on
        return passed(y * y + x * x, squares) + len(first)
    y, x = (signed_buckets(of, first) for of in (rows, columns))
    if method == "product":
        return y * (2 * len(first) + 1) + x
    return y if method == "cross_rows" else x


@part()
def signed_buckets(offsets: Array, first: list[int], /) -> Array:
    """Return the buckets of offsets of either sign, counted from 0."""
    return passed(offsets, first) - passed(-offsets, first) + len(first)


def passed(x: Array, thresholds: list[int], /) -> Array:
    """Return how many of the thresholds each number reaches."""
    xp = namespace(x)
    reached = x * 0
    for n in thresholds:
        reached = reached + xp.astype(x >= n, x.dtype)
    return reached
