"""Stick-breaking attention. Source: Tan et al., arXiv:2410.17980, section 2."""

from posref.core.arrays import Array, beside, by_sign, cast, library, namespace, number_system, suffix_sums, wide
from posref.core.checks import check_mask, check_real
from posref.spec import Axes, encoding, part
from posref.types import AnyArray, ArrayOf, T


@encoding(
    title="Stick-breaking attention",
    idea=(
        "A query goes back over the keys, the nearest first, and each key takes a share of what is left: the sigmoid of its "
        "logit. So among equal logits the nearest key gets most, and positions need no encoding. There is no softmax."
    ),
    longer="A model trained on 2048 tokens performs well on 16384, with a lower perplexity.",
    family="attention",
    source="arXiv:2410.17980, section 2",
    outputs=("weights", "remainder"),
    arrays={"logits": Axes("*R Q K"), "mask": Axes("~*R ~Q ~K", "mask")},
    result=("*R Q K", "*R Q"),
    rows="*R Q",
    sums=True,
)
def stick_breaking(logits: ArrayOf[T], mask: AnyArray, /) -> tuple[T, T]:
    r"""
    Return the weights of stick-breaking attention, and what they leave of each query's stick.

    .. math:: A_{ij} = \sigma(z_{ij}) \prod_{l > j} (1 - \sigma(z_{il})), \qquad r_i = 1 - \sum_j A_{ij}

    where z_ij is the logit of query i and key j, and the product is over the allowed keys l after j. A key that is not allowed
    has the weight 0 and takes nothing.

    Parameters
    ----------
    logits : array, real floating, shape ``(..., Q, K)``
        z, already multiplied by 1/sqrt(D), keys in the order of the text.
    mask : array, boolean, broadcasts with `logits`
        True where a query may attend to a key. In the paper these are the keys before the query, without its own; the authors'
        code has the option ``attend_current`` for its own key too.

    Returns
    -------
    weights : array, shape ``(..., Q, K)``
        A, in the dtype of `logits`: between 0 and 1, with a sum of at most 1. Multiply the values by them.
    remainder : array, shape ``(..., Q)``
        r. The authors' models add it times the query's own value. A query with no allowed key has 1.

    Raises
    ------
    ValueError
        If `logits` is not real floating or not at least 2-D, or `mask` is not boolean or does not fit.

    Notes
    -----
    Weights are computed as the exponential of a sum of logarithms. Products of sigmoids underflow after some hundred keys.

    Examples
    --------
    >>> import numpy as np
    >>> weights, remainder = stick_breaking(np.zeros((1, 3)), np.ones((1, 3), dtype=bool))
    >>> weights.round(6).tolist(), remainder.round(6).tolist()
    ([[0.125, 0.25, 0.5]], [0.125])
    """
    name = "stick_breaking"
    xp = library(name, logits=logits, mask=mask)
    check_real(name, logits=logits)
    if logits.ndim < 2:
        msg = f"{name}: logits must be (..., queries, keys); got shape {tuple(logits.shape)}."
        raise ValueError(msg)
    check_mask(name, "mask", mask, "a query may attend", "logits", logits.shape)
    work = wide(logits.dtype, xp)
    z, zero, one = cast(logits, work), beside(0.0, logits, work), beside(1.0, logits, work)
    shown = xp.where(mask, z, zero)
    logs = sticks_taken(log_sigmoid(shown), xp.where(mask, log_sigmoid(-shown), zero))
    weights = xp.where(mask, xp.exp(logs), zero)
    if number_system(xp) is not None:  # error bounds also cover the formula as written
        weights = xp.either(weights, lambda: _product(shown, mask))
    return cast(weights, logits.dtype), cast(one - xp.sum(weights, axis=-1), logits.dtype)


@part()
def log_sigmoid(z: Array, /) -> Array:
    """Return the logarithm of the sigmoid, with an exponential that does not overflow."""
    xp = namespace(z)
    below, _, size = by_sign(z)
    return below - xp.log(xp.exp(size) + beside(1.0, z, z.dtype))


@part()
def sticks_taken(taken: Array, left: Array, /) -> Array:
    """Return the logarithm of each key's weight: the log of its share, plus the logs of what later keys leave."""
    xp = namespace(taken)
    if not left.shape[-1]:
        return taken
    later = suffix_sums(left)
    return taken + xp.concat([later[..., 1:], 0.0 * later[..., :1]], axis=-1)


def _product(z: Array, mask: Array, /) -> Array:
    """Return the weights as the paper writes them: each share times what the shares of all later keys leave."""
    xp, one = namespace(z), beside(1.0, z, z.dtype)
    shares = xp.where(mask, one / (xp.exp(-z) + one), 0.0 * z)
    left, weights = 0.0 * shares[..., :1] + one, []
    for k in reversed(range(shares.shape[-1])):
        share = shares[..., k : k + 1]
        weights.append(share * left)
        left = left * (one - share)
    return xp.concat(weights[::-1], axis=-1) if weights else shares
