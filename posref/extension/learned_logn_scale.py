"""Log-n attention with learned factors. Sources: Mistral Large 4 in transformers; SSMax, Nakanishi, arXiv:2501.19399."""

from posref.core.arrays import beside, cast, library, whole, wide
from posref.core.checks import check_real, check_tokens
from posref.spec import Axes, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Learned log-n attention scaling (SSMax)",
    idea=(
        "With more keys, the softmax spreads its weight more thinly. Here every head learns how much sharper its queries "
        "become with the logarithm of how many keys they see, and from what start."
    ),
    family="extension",
    source="transformers 5.23, modeling_mistral_large4.py",
    models=("Mistral Large 4",),
    arrays={"positions": Axes("*B T", "integer"), "scale": Axes("H"), "bias": Axes("H")},
    result="*B H T",
    rows="*B H T",
    sums=True,
    read={
        "Mistral Large 4": "transformers 5.23.0, models/mistral_large4/modeling_mistral_large4.py:128-141",
        "SSMax": "arXiv:2501.19399, section 2",
    },
)
def learned_logn_scale(positions: ArrayOf[T], scale: ArrayOf[T], bias: ArrayOf[T], /) -> T:
    r"""
    Return a factor for every query and head: a learned scale times the logarithm of the number of visible keys, plus a bias.

    .. math:: f_{h,i} = a_h \ln \max(p_i + 1, 1) + c_h

    Here :math:`p_i` is the position of query i, and :math:`a_h` and :math:`c_h` are the scale and the bias of head h.

    Parameters
    ----------
    positions : array, integer, shape ``(*B, T)``
        p, positions of the queries, in tokens. A causal query at p sees p + 1 keys, its own included.
    scale : array, real floating, shape ``(H,)``
        a, learned. With a scale of 0 and a bias of 1 the factor is 1.
    bias : array, real floating, shape ``(H,)``
        c, learned.

    Returns
    -------
    array, shape ``(*B, H, T)``
        In the dtype of `scale`. Multiply each query by its factor. It does not matter whether this is before or after RoPE.

    Raises
    ------
    ValueError
        If positions are not integers or have no axis of tokens, or `scale` and `bias` are not real floating or not both
        ``(H,)``.

    Notes
    -----
    Mistral Large 4 applies it in all layers, after RoPE. transformers rounds the logarithm to the dtype of the queries, then
    the product, then the sum. SSMax has a scale and no bias (the paper also tried a bias; its code was not read): pass zeros.
    Then the first query has the factor 0 and attends evenly to all its keys; with a causal mask that is only its own.
    `logn_scale` has a fixed scale, 1 over the logarithm of a length. In JAX with 32-bit integers, positions must stay below
    2**31 - 1.

    Examples
    --------
    >>> import numpy as np
    >>> learned_logn_scale(np.asarray([0, 1, 9, 99]), np.asarray([0.5]), np.asarray([1.0])).round(4).tolist()
    [[1.0, 1.3466, 2.1513, 3.3026]]
    """
    name = "learned_logn_scale"
    xp = library(name, positions=positions, scale=scale, bias=bias)
    check_real(name, scale=scale, bias=bias)
    if scale.ndim != 1 or tuple(scale.shape) != tuple(bias.shape):
        msg = f"{name}: scale and bias must both be (heads,); got {tuple(scale.shape)} and {tuple(bias.shape)}."
        raise ValueError(msg)
    check_tokens(name, positions=positions)
    places = whole(name, "positions", positions)
    work = wide(scale.dtype, xp)
    logs = xp.log(cast(xp.maximum(places + 1, beside(1, places, places.dtype)), work))
    factors = cast(scale, work)[:, None] * logs[..., None, :] + cast(bias, work)[:, None]
    return cast(factors, scale.dtype)
