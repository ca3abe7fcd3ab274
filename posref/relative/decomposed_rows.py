"""Rows of decomposed relative tables. Source: Li et al., MViTv2, arXiv:2112.01526, section 4.1, and their code."""

from posref.core.arrays import Array, library, whole
from posref.core.checks import check_integer, check_tokens
from posref.spec import Axes, Integer, encoding, part
from posref.types import ArrayOf, T

LARGEST = 2**15  # products of two sizes have 32 bits in JAX


@encoding(
    title="Rows of decomposed relative tables (MViTv2)",
    idea=(
        "Along one axis of an image, a learned vector for each distance between query and key. If keys are fewer, because the "
        "layer pools them, their coordinates are stretched to those of the queries, and the distance is rounded down."
    ),
    tool=True,
    family="relative",
    source="arXiv:2112.01526, section 4.1; facebookresearch/mvit",
    models=("MViTv2", "ViTDet", "SAM", "SegGPT"),
    domains={"q_size": Integer(1, LARGEST, usual=64), "k_size": Integer(1, LARGEST, usual=64)},
    arrays={
        "q_positions": Axes("~*B Q", "integer", "0", "q_size-1"),
        "k_positions": Axes("~*B K", "integer", "0", "k_size-1"),
    },
    result="*B Q K",
    rows="*B Q K",
    returns="integer",
    noun="rows of the table",
)
def decomposed_rows(q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, q_size: int, k_size: int) -> T:
    r"""
    Return the row of a relative table for every query and key, along one axis of their grids.

    .. math:: a = \left\lfloor i \max(k/q, 1) + (k - 1 - j) \max(q/k, 1) \right\rfloor

    where i and j are the coordinates of query and key along that axis, q = `q_size` and k = `k_size`. One of the two factors is
    1, so in integers: :math:`\lfloor i k / q \rfloor + k - 1 - j` if k is at least q, else
    :math:`i + \lfloor (k - 1 - j) \, q / k \rfloor`. With equal sizes it is i - j + k - 1. A larger row is for a query further
    right, or further down, than the key.

    Parameters
    ----------
    q_positions : array, integer, shape ``(*B, Q)``
        i, in cells of the grid of queries, from 0 to ``q_size - 1``. Others have no row.
    k_positions : array, integer, shape ``(*B, K)``
        j, in cells of the grid of keys, from 0 to ``k_size - 1``.
    q_size : int
        q, the number of cells of the queries' grid along this axis, from 1 to 32768.
    k_size : int
        k, the number of cells of the keys' grid along this axis. SAM, ViTDet and SegGPT have k = q; MViTv2 pools keys.

    Returns
    -------
    array, indexing dtype of the library, shape ``(*B, Q, K)``
        Rows from 0 to ``2 * max(q_size, k_size) - 2``.

    Raises
    ------
    ValueError
        If positions are not integers or have no axis, or a size is out of its range.

    Notes
    -----
    Libraries compute this in floating point and cut off the fraction. In float32 that is one row too small for some cells of
    289 of the 4096 pairs of sizes up to 64, such as 8 queries and 6 keys. posref decides it in integers.

    Examples
    --------
    >>> import numpy as np
    >>> decomposed_rows(np.asarray([0, 1]), np.asarray([0, 1, 2, 3]), q_size=2, k_size=4).tolist()
    [[3, 2, 1, 0], [5, 4, 3, 2]]
    """
    name = "decomposed_rows"
    library(name, q_positions=q_positions, k_positions=k_positions)
    check_tokens(name, q_positions=q_positions, k_positions=k_positions)
    queries, keys = whole(name, "q_positions", q_positions), whole(name, "k_positions", k_positions)
    q_size, k_size = (check_integer(name, of, size, 1) for of, size in (("q_size", q_size), ("k_size", k_size)))
    if max(q_size, k_size) > LARGEST:
        msg = f"{name}: sizes must be at most {LARGEST} (their products have 32 bits in JAX); got {q_size} and {k_size}."
        raise ValueError(msg)
    if k_size >= q_size:
        return rounded_down(queries, k_size, q_size)[..., :, None] + (k_size - 1 - keys)[..., None, :]
    return queries[..., :, None] + rounded_down(k_size - 1 - keys, q_size, k_size)[..., None, :]


@part()
def rounded_down(cells: Array, over: int, under: int, /) -> Array:
    """Return cells times a ratio of sizes, rounded down."""
    return cells * over // under
