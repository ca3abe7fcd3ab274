"""Relative positions of ReRoPE: clipped at a window. Source: Su, kexue.fm/archives/9708; bojone/rerope, rerope_patch.py."""

from posref.core.arrays import distances, library
from posref.core.checks import check_integer
from posref.extension.passes import PLACES, signed
from posref.spec import Domain, Integer, encoding
from posref.types import ArrayOf, T

WINDOW: dict[str, Domain] = {"window": Integer(1)}


@encoding(
    title="Distances of ReRoPE",
    idea=(
        "Within a window of, say, 512 tokens, distances are exact. All keys further back count as exactly 512 away. So no "
        "distance is larger than those that the model met in training. This gives the distances."
    ),
    family="extension",
    source="kexue.fm/archives/9708; bojone/rerope",
    domains=WINDOW,
    invariants=("shift invariant", "decode"),
    arrays=PLACES,
    result="*B Q K",
    rows="*B Q K",
    returns="integer",
    noun="relative",
)
def rerope_distances(q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, window: int) -> T:
    r"""
    Return the relative position by which ReRoPE rotates every query and key against each other.

    .. math:: f(m, n) = m - n \text{ for } |m - n| < w, \qquad w \text{ otherwise}

    Here m is the position of the query, n the position of the key and w is `window`.

    Parameters
    ----------
    q_positions : array, signed integer, shape ``(*B, Q)``
        m, in tokens.
    k_positions : array, signed integer, shape ``(*B, K)``
        n, in tokens.
    window : int
        w, at least 1; 512 in the author's code.

    Returns
    -------
    array, integer, shape ``(*B, Q, K)``
        In tokens: min(m - n, w) for keys at or before the query.

    Raises
    ------
    ValueError
        If `window` is less than 1 or positions are not signed integers.

    Notes
    -----
    A key w or more after the query has +w, as in the author's prefill, which tests ``abs(m - n)``. The author's decoding clips
    only from above and leaves m - n there. A causal mask hides both.

    LM-Infinite (arXiv:2308.16137) uses these distances too, with the mask `lambda_window` of the same window, counting the
    query. Its ``limit_distance`` is w. In all runs of its authors ``limit_distance`` equals ``local_branch``.

    Examples
    --------
    >>> import numpy as np
    >>> rerope_distances(np.asarray([6]), np.asarray([0, 2, 3, 6, 8]), window=4).tolist()
    [[4, 4, 3, 0, -2]]
    """
    window = check_integer("rerope_distances", "window", window, 1)
    q_positions, k_positions = signed("rerope_distances", q_positions, k_positions)
    xp = library("rerope_distances", q_positions=q_positions, k_positions=k_positions)
    apart = distances(q_positions, k_positions)
    return xp.where(xp.abs(apart) < window, apart, 0 * apart + window)
