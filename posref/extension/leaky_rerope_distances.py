"""Relative positions of Leaky ReRoPE, which grow slowly beyond a window. Source: kexue.fm/archives/9708; bojone/rerope."""

from posref.core.arrays import DType, beside, cast, constants, distances, library, result_dtype, wide
from posref.core.checks import check_integer
from posref.extension.passes import PLACES, signed
from posref.spec import Domain, Integer, encoding
from posref.types import ArrayOf, T

OPTIONS: dict[str, Domain] = {"window": Integer(1), "factor": Integer(1, usual=16)}


@encoding(
    title="Distances of Leaky ReRoPE",
    idea=(
        "Within a window, distances are exact. Beyond it they grow slowly, say by 1 for every 16 tokens. So in a text several "
        "times longer than in training, distances stay within what the model has met. This gives the distances."
    ),
    family="extension",
    source="kexue.fm/archives/9708; bojone/rerope",
    domains=OPTIONS,
    invariants=("shift invariant", "decode"),
    arrays=PLACES,
    result="*B Q K",
    rows="*B Q K",
    noun="relative",
)
def leaky_rerope_distances(
    q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, window: int, factor: int, dtype: DType | None = None
) -> T:
    r"""
    Return the relative position by which Leaky ReRoPE rotates every query and key against each other.

    .. math:: f(m, n) = m - n \text{ for } |m - n| < w, \qquad w + \frac{m - n - w}{c} \text{ otherwise}

    Here m is the position of the query, n the position of the key, w is `window` and c `factor`.

    Parameters
    ----------
    q_positions : array, signed integer, shape ``(*B, Q)``
        m, in tokens.
    k_positions : array, signed integer, shape ``(*B, K)``
        n, in tokens.
    window : int
        w, at least 1; 512 in the author's code.
    factor : int
        c, at least 1: how many tokens beyond the window count as one; 16 in the author's code. With 1 this is RoPE.
    dtype : data type, optional
        Dtype of the result. None means the library's default real dtype.

    Returns
    -------
    array, real floating, shape ``(*B, Q, K)``
        In tokens.

    Raises
    ------
    ValueError
        If `window` or `factor` is less than 1, ``window * (factor - 1)`` is 2**31 or more, or positions are not signed
        integers.

    Notes
    -----
    A key w or more after the query is also beyond the window, as in the author's prefill. Decoding has no such keys.

    Examples
    --------
    >>> import numpy as np
    >>> leaky_rerope_distances(np.asarray([9]), np.asarray([0, 4, 5, 6, 9]), window=4, factor=2).tolist()
    [[6.5, 4.5, 4.0, 3.0, 0.0]]
    """
    window, factor = check_options("leaky_rerope_distances", window, factor)
    q_positions, k_positions = signed("leaky_rerope_distances", q_positions, k_positions)
    xp = library("leaky_rerope_distances", q_positions=q_positions, k_positions=k_positions)
    dtype = result_dtype("leaky_rerope_distances", q_positions, dtype)
    apart = distances(q_positions, k_positions)
    tokens = cast(apart, wide(dtype, xp))
    c = constants(xp)
    share = beside(c.asarray(1.0, dtype=c.float64) / factor, apart, tokens.dtype)  # compilers divide by a constant in this way
    beyond = (tokens - float(window)) * share + float(window)
    return cast(xp.where(xp.abs(apart) < window, tokens, beyond), dtype)


def check_options(function: str, window: int, factor: int) -> tuple[int, int]:
    """Return both options as ints. Raise if one is less than 1, or positions beyond the window may overflow."""
    window = check_integer(function, "window", window, 1)
    factor = check_integer(function, "factor", factor, 1)
    check_integer(function, "window * (factor - 1)", window * (factor - 1), 0)
    return window, factor
