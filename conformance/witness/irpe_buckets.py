"""
Buckets of image RPE. Source: Wu et al., arXiv:2107.14222, equation (18), where square brackets round:

    g(x) = [x]                                                                              if |x| <= alpha
    g(x) = sign(x) * min(beta, [alpha + ln(|x| / alpha) / ln(gamma / alpha) * (beta - alpha)])   if |x| >  alpha

and the authors' code (microsoft/Cream, iRPE/DeiT-with-iRPE/irpe.py) for the two offsets, for beta that is no integer, and for
pairs with a token that is not a cell (skip).
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, broadcast, build, shape


def irpe_buckets(
    q_positions: Any, k_positions: Any, *, method: str, alpha: Any, beta: Any, gamma: Any, cells: Any = None
) -> Any:
    """Return the buckets, shape (*B, Q, K)."""
    (_, *q_batch, rows), (_, *k_batch, columns) = shape(q_positions), shape(k_positions)
    beta_int = int(mp.floor(beta))
    side = 2 * beta_int + 1
    num_buckets = side * side if method == "product" else side

    def g(x: Any) -> int:
        return _piecewise_index(x, mpf(alpha), mpf(beta), mpf(gamma)) + beta_int

    def element(*index: int) -> int:
        *batch, i, j = index
        if cells is not None and not at(cells, index):
            return num_buckets
        y, x = (at(q_positions[axis], (*batch, i)) - at(k_positions[axis], (*batch, j)) for axis in (0, 1))
        squared = mpf(int(y)) ** 2 + mpf(int(x)) ** 2
        return {
            "euclidean": lambda: g(mp.nint(mp.sqrt(squared))),
            "quant": lambda: g(squared),
            "product": lambda: g(y) * side + g(x),
            "cross_rows": lambda: g(y),
            "cross_cols": lambda: g(x),
        }[method]()

    m_batch = shape(cells)[:-2] if cells is not None else ()
    return build((*broadcast(q_batch, k_batch, m_batch), rows, columns), element)


def _piecewise_index(x: Any, alpha: Any, beta: Any, gamma: Any) -> int:
    size = mpf(abs(int(x)))
    if size <= alpha:
        return int(x)
    rounded = _round(alpha + mp.log(size / alpha) / mp.log(gamma / alpha) * (beta - alpha))
    return int(mp.sign(int(x))) * int(mp.floor(min(mpf(rounded), beta)))


def _round(x: Any) -> int:
    twice = mp.nint(2 * x)  # a half that is met exactly may come out as 2.4999...
    return int(mp.nint(twice / 2 if abs(2 * x - twice) <= mp.ldexp(1, -(mp.prec // 2)) else x))
