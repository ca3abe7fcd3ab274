"""The matrix that maps one sinusoidal position to another. Source: Vaswani et al., arXiv:1706.03762, section 3.5."""

from posref.absolute.sines import ladder
from posref.absolute.sinusoidal import LAYOUTS, Layout
from posref.core.angles import cos_sin
from posref.core.arrays import DType, beside, cast, library, result_dtype
from posref.core.checks import check_integer, check_positions, check_positive, check_word
from posref.spec import Axes, Flag, Integer, OneOf, Real, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Shift matrix of sinusoids",
    idea=(
        "Moving on by a fixed number of tokens, say 5, changes every sinusoidal vector in the same way: each sine and cosine "
        "pair rotates by a fixed angle. This gives that rotation as a matrix. It is why sinusoids can express relative "
        "positions."
    ),
    tool=True,
    family="absolute",
    source="arXiv:1706.03762, section 3.5",
    models=("Transformer",),
    domains={
        "dim": Integer(2, step=2),
        "layout": OneOf(LAYOUTS),
        "base": Real(0, usual=(2, 1e6)),
        "endpoint": Flag(),
    },
    arrays={"offsets": Axes("*P", "position")},
    result="*P dim dim",
    rows="*P",
    requires=("dim >= 4 or not endpoint",),
    rounded=("offsets", "result"),
)
def sinusoidal_shift(
    offsets: ArrayOf[T],
    dim: int,
    /,
    *,
    layout: Layout,
    base: float = 10000.0,
    endpoint: bool = False,
    dtype: DType | None = None,
) -> T:
    r"""
    Return matrices that map the sinusoid of any position p to the sinusoid of position p + k.

    .. math:: PE_{p+k} = M_k \, PE_p, \qquad \begin{pmatrix} \sin (p+k) \omega_i \\ \cos (p+k) \omega_i \end{pmatrix} =
        \begin{pmatrix} \cos k \omega_i & \sin k \omega_i \\ -\sin k \omega_i & \cos k \omega_i \end{pmatrix}
        \begin{pmatrix} \sin p \omega_i \\ \cos p \omega_i \end{pmatrix}

    where PE_p is the row of `sinusoidal` for position p as a column vector, k the offset and omega_i the frequency of pair i,
    :math:`b^{-2i/d}`, or :math:`b^{-i/(d/2 - 1)}` with `endpoint`. `layout` says where the sine and cosine of a pair stand. All
    other entries are 0.

    Parameters
    ----------
    offsets : array, integer or at least float32, shape ``(*P,)``
        k, in tokens; usually a scalar. A negative offset goes back.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    dim : int
        d, even, at least 2 (at least 4 with `endpoint`).
    layout : {"interleaved", "sin_cos", "cos_sin"}
        Where the sine and cosine of a pair stand, as in `sinusoidal`.

        - ``"interleaved"``: Each sine stands beside the cosine of the same frequency, as in the Transformer's paper.
        - ``"sin_cos"``: The first half holds all sines, the second all cosines.
        - ``"cos_sin"``: The first half holds all cosines, the second all sines.
    base, endpoint
        As in `sinusoidal`.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating offsets, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*P, d, d)``
        Each matrix is orthogonal: its inverse is its transpose, which is the matrix of -k. The product of the matrices of j
        and k is the matrix of j + k.

    Raises
    ------
    ValueError
        If `dim` is odd or too small, `base` is not positive, `layout` is unknown, or offsets are half precision.

    Notes
    -----
    The paper chose sinusoids because such a matrix exists, but does not write it out. For an odd width that ends in a sine
    without its cosine there is no such matrix.

    Examples
    --------
    >>> import numpy as np
    >>> sinusoidal_shift(np.asarray(1), 2, layout="sin_cos").round(4).tolist()
    [[0.5403, 0.8415], [-0.8415, 0.5403]]
    """
    name = "sinusoidal_shift"
    check_word(name, "layout", layout, LAYOUTS)
    check_positions(name, "offsets", offsets)
    base = check_positive(name, "base", base)
    dim = check_integer(name, "dim", dim, 4 if endpoint else 2, " with endpoint=True" if endpoint else "")
    if dim % 2:
        msg = f"{name}: dim must be even (a sine needs its cosine); got {dim}."
        raise ValueError(msg)
    xp, half = library(name, offsets=offsets), dim // 2
    dtype = result_dtype(name, offsets, dtype)
    cos, sin = cos_sin(offsets, ladder(xp, half, half - 1 if endpoint else half, base), dtype=dtype)
    pairs = [0] * dim**2  # for every entry: its pair, and the factors of that pair's cosine and sine
    of_cos, of_sin = [0.0] * dim**2, [0.0] * dim**2
    for i, (s, c) in enumerate(_columns(layout, half)):
        for row, column, cosine, sine in ((s, s, 1.0, 0.0), (s, c, 0.0, 1.0), (c, s, 0.0, -1.0), (c, c, 1.0, 0.0)):
            at = row * dim + column
            pairs[at], of_cos[at], of_sin[at] = i, cosine, sine
    flat = beside(pairs, offsets, None)
    waves = [(cos, beside(of_cos, offsets, cos.dtype)), (sin, beside(of_sin, offsets, sin.dtype))]
    first, second = (xp.take(wave, flat, axis=wave.ndim - 1) * factors for wave, factors in waves)
    return cast(xp.reshape(first + second, (*offsets.shape, dim, dim)), dtype)


def _columns(layout: str, half: int) -> list[tuple[int, int]]:
    """Return the columns of the sine and the cosine of every pair."""
    if layout == "interleaved":
        return [(2 * i, 2 * i + 1) for i in range(half)]
    first = [(i, half + i) for i in range(half)]
    return first if layout == "sin_cos" else [(s, c) for c, s in first]
