"""Logits of scaled dot-product attention. Source: arXiv:1706.03762, section 3.2.1."""

from math import sqrt

from posref.core.arrays import (
    Array,
    beside,
    cast,
    check_heads,
    common_shape,
    library,
    namespace,
    number_system,
    repeat_heads,
    wide,
)
from posref.core.blocks import in_blocks
from posref.core.checks import check_broadcast, check_finite, check_positive, check_real
from posref.core.products import matmul
from posref.spec import Axes, Real, encoding
from posref.types import ArrayOf, T

LOGITS = {
    "q": Axes("Q D | *R G*g Q D", usual=(-1.0, 1.0)),
    "k": Axes("K D | *R G K D"),
    "bias": Axes("~Q ~K | ~*R ~G*g ~Q ~K", optional=True),
}
SCALED = ("D > 0 or scale is not None",)
NUMBERS = {"scale": Real(0, optional=True, usual=(2**-6, 2)), "softcap": Real(0, optional=True, usual=(1, 64))}


@encoding(
    title="Attention logits",
    idea=(
        "The logit of a query and a key says how well they match: their dot product times a scale, usually one over the root "
        "of the head's size. Position encodings act here: by rotating queries and keys, or by a bias that is added."
    ),
    family="attention",
    source="arXiv:1706.03762, section 3.2.1",
    domains=NUMBERS,
    invariants=("permutation equivariant",),
    arrays=LOGITS,
    result="Q K | *R G*g Q K",
    rows="*R Q K",
    requires=SCALED,
    noun="logits",
    sums=True,
    rounded=("result",),
)
def attention_logits(
    q: ArrayOf[T], k: ArrayOf[T], /, *, bias: ArrayOf[T] | None = None, scale: float | None = None, softcap: float | None = None
) -> T:
    r"""
    Return the scaled products of queries and keys, plus a bias.

    .. math:: \ell_{ij} = \sigma \, q_i \cdot k_j + B_{ij} \qquad \text{or, with a softcap,} \qquad
        \ell_{ij} = c \tanh\frac{\sigma \, q_i \cdot k_j}{c} + B_{ij}

    where q_i and k_j are query i and key j of a head, sigma is the scale, B the bias and c the softcap. Query head h, counted
    from 0, uses key head h G / H, rounded down.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, H, Q, D)``
        Queries; R and H may be missing.
    k : array, real floating, shape ``(*R, G, K, D)``
        Keys. H is a multiple of G: each key head serves a block of H/G neighbouring query heads.
    bias : array, real floating, optional
        B, in logit units. It must broadcast to ``(*R, H, Q, K)``. It is added after the scale and the softcap.
    scale : float, optional
        sigma; None means 1/sqrt(D).
    softcap : float, optional
        c, above 0: scaled products stay between -c and c. None means no such limit. 50 in Gemma 2 and VaultGemma, 30 in Grok.

    Returns
    -------
    array, shape ``(*R, H, Q, K)``
        In the dtype of `q`.

    Raises
    ------
    ValueError
        If H is not a multiple of G, shapes do not fit, an array is not real floating, `scale` is not finite, `softcap` is
        not a finite number above 0, or D is 0 and `scale` is None.

    Notes
    -----
    The products come from the library's matmul, with all digits of float32: neither TF32 nor autocast narrows them.

    The softcap is equation (1) of the Gemma 2 report (arXiv:2408.00118, section 2) without a bias. Its code adds the mask
    afterwards. A softcap of numbers that are masked already makes them -c, so that such keys are still seen.

    Examples
    --------
    >>> import numpy as np
    >>> attention_logits(np.asarray([[1.0, 2.0, 0.0, 1.0]]), np.asarray([[3.0, 4.0, 5.0, 1.0]])).tolist()
    [[6.0]]
    """
    check_logits("attention_logits", q, k, bias, scale, softcap)
    return cast(_scaled(products("attention_logits", q, k), bias, q=q, k=k, scale=scale, softcap=softcap), q.dtype)


@in_blocks(over="scores", scores=(0, 1), bias=(0, 1))
def _scaled(scores: Array, bias: Array | None, /, *, q: Array, k: Array, scale: float | None, softcap: float | None) -> Array:
    """Return products of queries and keys times the scale, within the softcap, plus a bias."""
    work = scores.dtype
    logits = scaled(scores, q, scale)
    system = number_system(namespace(q))
    if system is not None and not system.holds_factors:
        # error bounds also cover the root of the scale on q and on k, as in PyTorch's math kernel
        root = sqrt(1 / sqrt(q.shape[-1]) if scale is None else abs(scale))
        logits = system.either(logits, lambda: products("attention_logits", cast(q, work) * root, cast(k, work) * root))
    logits = logits if softcap is None else capped(logits, float(softcap))
    return logits if bias is None else logits + cast(bias, work)


def capped(logits: Array, softcap: float) -> Array:
    """Return numbers between -softcap and softcap, that grow as the logits do near 0."""
    return namespace(logits).tanh(logits / softcap) * softcap


def scaled(scores: Array, q: Array, scale: float | None) -> Array:
    """Return products of queries and keys times the scale, or over the root of the size of a head."""
    return scores / namespace(q).sqrt(beside(float(q.shape[-1]), q, scores.dtype)) if scale is None else scores * float(scale)


def check_queries(function: str, q: Array, k: Array) -> None:
    """Raise if queries and keys differ in width or are not real floating."""
    library(function, q=q, k=k)
    if q.ndim < 2 or k.ndim < 2 or q.shape[-1] != k.shape[-1]:
        msg = f"{function}: q and k must be (..., Q, D) and (..., K, D); got {tuple(q.shape)} and {tuple(k.shape)}."
        raise ValueError(msg)
    check_real(function, q=q, k=k)


def check_logits(
    function: str, q: Array, k: Array, bias: Array | None, scale: float | None, softcap: float | None = None
) -> None:
    """Raise if queries, keys, bias, scale and softcap do not fit together."""
    check_queries(function, q, k)
    if softcap is not None:
        check_positive(function, "softcap", softcap)
    if scale is not None:
        scale = check_finite(function, "scale", scale)
    elif q.shape[-1] == 0:
        msg = f"{function}: scale must be given when q has no channels (1/sqrt(D) is infinite); got None."
        raise ValueError(msg)
    leading = tuple(k.shape[:-2])
    if q.ndim > 2 and k.ndim > 2:
        check_heads(function, q.shape[-3], k.shape[-3])
        leading = (*leading[:-1], q.shape[-3])
    check_broadcast(function, "leading axes of q and k", tuple(q.shape[:-2]), leading)
    if bias is not None:
        library(function, q=q, bias=bias)
        check_real(function, bias=bias)
        logits = (*common_shape(tuple(q.shape[:-2]), leading), q.shape[-2], k.shape[-2])
        check_broadcast(function, "logits and bias", logits, bias.shape)


def products(function: str, q: Array, k: Array) -> Array:
    """Return the products of queries and the keys of their head, in the working dtype (float32 or wider)."""
    xp = library(function, q=q, k=k)
    work = wide(q.dtype, xp)
    check_queries(function, q, k)
    keys = repeat_heads(function, k, q.shape[-3]) if q.ndim > 2 else k
    check_broadcast(function, "leading axes of q and k", q.shape[:-2], keys.shape[:-2])
    return matmul(cast(q, work), xp.matrix_transpose(cast(keys, work)))
