"""ALiBi's slopes. Source: Press et al., arXiv:2108.12409, section 3, and the authors' get_slopes."""

from typing import Any

from posref.core.arrays import DType, constants, created
from posref.core.checks import check_integer, check_positive
from posref.spec import Integer, Real, encoding
from posref.types import HOST, N, NamespaceOf


@encoding(
    title="ALiBi slopes",
    idea=(
        "In ALiBi every attention head lowers far keys at a rate of its own. With 8 heads the rates are 1/2, 1/4 and so on "
        "down to 1/256: the first head sees only the nearest tokens, the last one far back. This gives the rate of each head."
    ),
    family="bias",
    source="arXiv:2108.12409, section 3",
    models=("BLOOM", "MPT", "Baichuan-13B"),
    domains={"heads": Integer(1, usual=128), "max_bias": Real(0)},
    result="heads",
    noun="slopes",
)
def alibi_slopes(
    heads: int, /, *, max_bias: float = 8, xp: NamespaceOf[N] | None = HOST, device: Any = None, dtype: DType | None = None
) -> N:
    r"""
    Return the slope of every head.

    .. math:: m_h = 2^{-\beta h/H}, \qquad h = 1 \dots H

    for H heads, if H is a power of two. Otherwise let P be the largest power of two below H. The first P slopes are those of P
    heads, :math:`2^{-\beta h/P}` for h = 1 ... P. The other H - P are every other slope of 2P heads,
    :math:`2^{-\beta(2n-1)/(2P)}` for n = 1 ... H - P.

    Parameters
    ----------
    heads : int
        H, the number of heads in the whole model (not in one shard), at least 1.
    max_bias : float
        beta, above 0; 8 in the paper. MPT calls it ``alibi_bias_max``.
    xp : array namespace, optional
        The library of the result. None means NumPy.
    device : optional
        The device of the result. None means the library's default.
    dtype : data type, optional
        Dtype of the result. None means float64 if the library computes in float64, else float32.

    Returns
    -------
    array, shape ``(H,)``
        In logits per token. They decrease with h if H is a power of two.

    Raises
    ------
    ValueError
        If `heads` is less than 1 or `max_bias` is not positive.

    Notes
    -----
    The paper does not say what to do when H is not a power of two. The rule above is from the authors' code. MPT's code
    computes the same slopes in another way.

    Examples
    --------
    >>> alibi_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    heads = check_integer("alibi_slopes", "heads", heads, 1)
    max_bias = check_positive("alibi_slopes", "max_bias", max_bias)
    c = constants(xp)
    below = 1 << heads.bit_length() - 1  # the power of two at or below heads
    steps = [2 * h for h in range(1, below + 1)] + [2 * h - 1 for h in range(1, heads - below + 1)]
    exponents = c.asarray(steps, dtype=c.float64) * float(max_bias) / (2 * below)
    return created("alibi_slopes", c.pow(c.asarray(2.0, dtype=c.float64), -exponents), xp, device, dtype)
