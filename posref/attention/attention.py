"""Scaled dot-product attention, to compare logits and outputs. Source: arXiv:1706.03762, equation (1)."""

from posref.attention.attention_logits import LOGITS, NUMBERS, SCALED, attention_logits, check_logits
from posref.core.arrays import Array, beside, cast, library, namespace, repeat_heads, wide
from posref.core.blocks import in_blocks
from posref.core.checks import check_broadcast, check_real
from posref.core.products import matmul
from posref.spec import Axes, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Scaled dot-product attention",
    idea=(
        "Every query is compared with all keys that it may see. The softmax makes weights of these logits, and the result is "
        "the mean of the values by these weights. Position encodings decide how much a key's place counts."
    ),
    family="attention",
    source="arXiv:1706.03762, equation (1)",
    domains=NUMBERS,
    invariants=("permutation equivariant",),
    arrays=LOGITS
    | {
        "v": Axes("K E | *R G K E"),
        "mask": Axes("~Q ~K | ~*R ~G*g ~Q ~K", "mask", optional=True),
        "sinks": Axes("1 | G*g", optional=True),
    },
    result="Q E | *R G*g Q E",
    rows="*R Q",
    requires=SCALED,
    sums=True,
)
def attention(
    q: ArrayOf[T],
    k: ArrayOf[T],
    v: ArrayOf[T],
    /,
    *,
    bias: ArrayOf[T] | None = None,
    mask: ArrayOf[T] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: ArrayOf[T] | None = None,
) -> T:
    r"""
    Return the sum of the values, weighted by the softmax of the logits.

    .. math:: o_i = \frac{\sum_j e^{\ell_{ij}} v_j}{e^{s_h} + \sum_j e^{\ell_{ij}}}, \qquad
        \ell_{ij} = \sigma \, q_i \cdot k_j + B_{ij}

    where both sums run over the keys j that query i may attend to. q_i, k_j and v_j are query i, key j and value j of head h,
    sigma is the scale, B the bias and s_h the sink of head h. With a softcap c, c tanh(sigma q_i . k_j / c) takes the place of
    sigma q_i . k_j. Without `sinks` the term with s_h is absent.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, H, Q, D)``
        Queries; R and H may be missing.
    k : array, real floating, shape ``(*R, G, K, D)``
        Keys. H is a multiple of G: each key head serves a block of H/G neighbouring query heads.
    v : array, real floating, shape ``(*R, G, K, E)``
        Values. Each value head, like each key head, serves a block of H/G neighbouring query heads.
    bias : array, real floating, optional
        B, in logit units. It must broadcast to ``(*R, H, Q, K)``. It is added after the scale and the softcap.
    mask : array, boolean, optional
        It must broadcast to ``(*R, H, Q, K)``. True where a query may attend to a key.
    scale : float, optional
        sigma; None means 1/sqrt(D).
    softcap : float, optional
        c, above 0: scaled products stay between -c and c. None means no such limit. 50 in Gemma 2 and VaultGemma, 30 in Grok.
    sinks : array, real floating, optional, shape ``(H,)``
        s, a learned logit for each query head, not scaled. It takes a share of the softmax, but has no value. Shape ``(1,)`` if
        H is missing. Used by gpt-oss, MiMo-V2-Flash and DeepSeek-V4.

    Returns
    -------
    array, shape ``(*R, H, Q, E)``
        In the dtype of `q`. A query that may attend to no key gets zeros (a finite mask constant would average all values).

    Raises
    ------
    ValueError
        As for `attention_logits`; also if `v` is not real floating or has another number of keys than `k`, `mask` is not
        boolean or does not fit, or `sinks` does not have one number for each query head.

    Notes
    -----
    With sinks the weights of the values add up to less than 1. Granite computes the same differently: it multiplies the result
    without sinks by the sigmoid of (logarithm of its denominator - sink). A sink of 0 adds 1 to the denominator; without
    `sinks` nothing is added.

    Examples
    --------
    >>> import numpy as np
    >>> same = np.asarray([[1.0], [1.0]])
    >>> attention(np.asarray([[1.0]]), same, np.asarray([[2.0], [4.0]])).tolist()
    [[3.0]]
    """
    work = wide(q.dtype, library("attention", q=q, k=k, v=v))
    check_logits("attention", q, k, bias, scale, softcap)
    logits = attention_logits(cast(q, work), k, bias=bias, scale=scale, softcap=softcap)
    check_real("attention", v=v)
    if v.ndim < 2 or v.shape[-2] != k.shape[-2]:
        msg = f"attention: v must be (..., K, E) for k, {tuple(k.shape)}; got {tuple(v.shape)}."
        raise ValueError(msg)
    if mask is not None:
        _check_mask(logits, mask)
    return cast(softmax(logits, v, mask, sinks=sinks), q.dtype)


@part()
def softmax(logits: Array, v: Array, mask: Array | None, /, *, sinks: Array | None) -> Array:
    """Return the values summed with the softmax weights, in the dtype of the logits. A row without an allowed key is zero."""
    values = cast(repeat_heads("attention", v, logits.shape[-3]) if logits.ndim > 2 else v, logits.dtype)
    check_broadcast("attention", "leading axes of logits and v", logits.shape[:-2], values.shape[:-2])
    column = None if sinks is None else _column(logits, sinks)
    if 0 in logits.shape:  # no query, or no key: sums of nothing
        return matmul(logits, values)
    if mask is not None and mask.ndim == 0:
        mask = mask[None]  # the same for all keys
    return matmul(_weights(logits, mask, column), values)


@in_blocks(over="logits", logits=(0, 1), mask=(0, 1), column=(0, 1))
def _weights(logits: Array, mask: Array | None, column: Array | None, /) -> Array:
    """Return the softmax of each row of logits and of its sink, without the weight of the sink."""
    xp = namespace(logits)
    largest = xp.max(logits, axis=-1, keepdims=True) if mask is None else _largest_allowed(logits, mask)
    largest = largest if column is None else xp.maximum(largest, column)
    exps = xp.exp(logits - largest) if mask is None else _masked_exps(logits, mask, largest)
    total = xp.sum(exps, axis=-1, keepdims=True)
    total = total if column is None else total + xp.exp(column - largest)
    if mask is not None:
        total = xp.where(xp.any(mask, axis=-1, keepdims=True), total, beside(1.0, logits, total.dtype))
    return exps / total


def _column(logits: Array, sinks: Array) -> Array:
    """Return the sinks in a shape that broadcasts with the logits, one for each head."""
    xp, heads = namespace(logits, sinks, function="attention"), (*(1,) * (3 - logits.ndim), *logits.shape)[-3]
    check_real("attention", sinks=sinks)
    if tuple(sinks.shape) != (heads,):
        msg = f"attention: sinks must have one number for each query head, shape ({heads},); got shape {tuple(sinks.shape)}."
        raise ValueError(msg)
    shape = (heads, 1, 1) if logits.ndim > 2 else (1, 1)
    return xp.reshape(cast(sinks, logits.dtype), shape)


def _check_mask(logits: Array, mask: Array) -> None:
    """Raise if a mask is not boolean, or does not broadcast with the logits."""
    if not namespace(logits, mask, function="attention").isdtype(mask.dtype, "bool"):
        remedy = " Pass numbers to add to the logits as bias." if namespace(mask).isdtype(mask.dtype, "real floating") else ""
        msg = f"attention: mask must be boolean, True where a query may attend; got {mask.dtype}.{remedy}"
        raise ValueError(msg)
    check_broadcast("attention", "logits and mask", logits.shape, mask.shape)


def _largest_allowed(logits: Array, mask: Array) -> Array:
    """Return the largest allowed logit of every row, or 0 if no key is allowed."""
    xp = namespace(logits, mask)
    zero, least = (beside(number, logits, logits.dtype) for number in (0.0, -float("inf")))
    largest = xp.max(xp.where(mask, logits, least), axis=-1, keepdims=True)
    return xp.where(xp.any(mask, axis=-1, keepdims=True), largest, zero)


def _masked_exps(logits: Array, mask: Array, largest: Array) -> Array:
    """Return the exponential of each allowed logit minus the largest of its row, and 0 elsewhere. Gradients stay finite."""
    xp, zero = namespace(logits, mask), beside(0.0, logits, logits.dtype)
    return xp.where(mask, xp.exp(xp.where(mask, logits - largest, zero)), zero)
