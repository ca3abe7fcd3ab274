"""RoPE as a matrix. Source: Su et al., arXiv:2104.09864, equation (15)."""

from typing import Any

from posref.core.arrays import Array, DType, beside, cast, constants, library, namespace, result_dtype, wide
from posref.core.checks import check_positions, check_word
from posref.rotary.apply_rope import LAYOUTS, WORDS, apply_rope
from posref.rotary.rope_frequencies import check_dim, check_scaling, rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.scaling import Scaling
from posref.spec import Axes, Integer, OneOf, Real, Record, encoding
from posref.types import AnyArray, ArrayOf, Layout, T


def by_columns(
    position: Array, dim: int, /, *, layout: Layout, base: float, scaling: Scaling | None = None, length: Any = None,
    dtype: DType | None = None,
) -> Array:  # fmt: skip
    """Return the same matrix another way: its columns are the rotated unit vectors."""
    xp = namespace(position)
    inv_freq, factor = rope_frequencies(dim, base=base, scaling=scaling, length=length)
    cos, sin = rope_table(position[..., None], inv_freq, attention_factor=factor, dtype=dtype)
    units = beside([[float(i == j) for j in range(dim)] for i in range(dim)], position, cos.dtype)
    units = xp.broadcast_to(units, (*position.shape, dim, dim))
    return xp.matrix_transpose(apply_rope(units, cos, sin, layout=layout))


@encoding(
    title="RoPE as a matrix",
    idea=(
        "RoPE is a product with a matrix: four numbers for every channel pair, zeros elsewhere. It is too slow for models, but "
        "shows why RoPE works: the matrix of position 3, transposed, times the matrix of position 5 is the matrix of position "
        "2."
    ),
    tool=True,
    family="rotary",
    source="arXiv:2104.09864, equation (15)",
    domains={
        "dim": Integer(2, step=2),
        "layout": OneOf(WORDS),
        "base": Real(0, usual=(2, 1e7)),
        "scaling": Record(),
        "length": Integer(0, optional=True, usual=2**20),
    },
    arrays={"position": Axes("*P", "position")},
    result="*P dim dim",
    rows="*P",
    sums=True,
    equals=by_columns,
)
def rotation_matrix(
    position: ArrayOf[T],
    dim: int,
    /,
    *,
    layout: Layout,
    base: float,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
    dtype: DType | None = None,
) -> T:
    r"""
    Return the matrix R for which ``R x = rope(x)``: four entries for each channel pair, and 0 elsewhere.

    .. math:: R_{u'u} = R_{v'v} = f \cos p\theta_i, \qquad R_{v'u} = -R_{u'v} = f \sin p\theta_i, \qquad
        \theta_i = b^{-2i/d}, \quad i = 0 \dots d/2-1

    Here p is the position. Pair i is read from channels u and v and written to channels u' and v' (see `layout`). The factor f
    is 1 unless a `scaling` has one. Use R for teaching and for proofs: if f is 1 and the layout is "half" or "interleaved",
    :math:`R_m^T R_n = R_{n-m}`. Computing with R costs about d times as much as `rope`.

    Parameters
    ----------
    position : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens. Usually one position, without axes.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    dim : int
        d, the number of channels, even.
    layout : {"half", "interleaved", "interleaved_to_half"}
        Where pair i is read, u and v, and where it is written, u' and v'. The first two layouts write where they read.

        - ``"half"``: Pair i is channels i and i + d/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair i is the neighbouring channels 2i and 2i + 1, as in RoPE's paper.
        - ``"interleaved_to_half"``: Pair i is read at channels 2i and 2i + 1, and written at i and i + d/2.
    base : float
        b ("rope_theta" in configurations), above 0.
    scaling : record of posref.scaling, optional
        A context extension, which changes theta and f: see `rope_frequencies`.
    length : int or integer array without axes, optional
        The number of tokens in the sequence, cached ones included. Some scalings need it: see `rope_frequencies`.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*P, dim, dim)``
        Rows are channels written, columns are channels read. R is orthogonal if f is 1.

    Raises
    ------
    ValueError
        If `dim` is odd, `base` is not positive, positions are half precision, or an option is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> rotation_matrix(np.asarray(1), 2, layout="half", base=10000.0).round(4).tolist()
    [[0.5403, -0.8415], [0.8415, 0.5403]]
    """
    check_word("rotation_matrix", "layout", layout, WORDS)
    check_positions("rotation_matrix", "position", position)
    check_dim("rotation_matrix", dim)
    xp = library("rotation_matrix", position=position)
    check_scaling("rotation_matrix", dim, base=base, scaling=scaling, length=length)
    c = constants(xp)
    inv_freq, factor = rope_frequencies(dim, base=base, scaling=scaling, length=length, xp=c if c is xp else None)
    dtype = result_dtype("rotation_matrix", position, dtype)
    cos, sin = rope_table(position, inv_freq, attention_factor=factor, dtype=wide(dtype, xp))
    read, write = (_channels(side, dim) for side in LAYOUTS[layout])
    cells = [[(0.0, 0.0)] * dim for _ in range(dim)]  # coefficients of cosine and sine of the pair in `pairs`
    pairs = [[0] * dim for _ in range(dim)]
    for i, ((read_a, read_b), (write_a, write_b)) in enumerate(zip(read, write, strict=True)):
        cells[write_a][read_a] = cells[write_b][read_b] = (1.0, 0.0)
        cells[write_b][read_a], cells[write_a][read_b] = (0.0, 1.0), (0.0, -1.0)
        for row in (write_a, write_b):
            pairs[row][read_a] = pairs[row][read_b] = i
    flat = beside([i for row in pairs for i in row], position, None)
    of_cos, of_sin = (beside([cell[k] for row in cells for cell in row], position, cos.dtype) for k in (0, 1))
    matrix = xp.take(cos, flat, axis=cos.ndim - 1) * of_cos + xp.take(sin, flat, axis=sin.ndim - 1) * of_sin
    return cast(xp.reshape(matrix, (*position.shape, dim, dim)), dtype)


def _channels(layout: Layout, dim: int) -> list[tuple[int, int]]:
    """Return the two channels of every pair."""
    half = dim // 2
    return [(i, i + half) if layout == "half" else (2 * i, 2 * i + 1) for i in range(half)]
