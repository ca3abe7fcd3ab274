"""Logits of Wall attention. Source: Tilde Research, blog.tilderesearch.com/blog/wall-attn (2026)."""

from posref.core.arrays import Array, Beside, beside, cast, common_shape, index_dtype, library, namespace, repeat_heads, wide
from posref.core.blocks import in_blocks
from posref.core.checks import check_real
from posref.core.matrices import matrix_dtype
from posref.spec import Axes, Real, encoding, part
from posref.types import ArrayOf, T

from .attention_logits import SCALED, check_logits, scaled


@encoding(
    title="Wall attention",
    idea=(
        "Every token has a decay between 0 and 1 for each channel of each query head, computed from its content. Before a "
        "query meets a key, each channel is multiplied by the decays of all tokens after the key, up to the query. This is the "
        "only thing that tells the model how far the key is."
    ),
    family="attention",
    source="blog.tilderesearch.com/blog/wall-attn",
    models=("wall_transformer of flash-linear-attention",),
    domains={"scale": Real(0, optional=True, usual=(2**-6, 2))},
    arrays={
        "q": Axes("Q D | *R G*g Q D", usual=(-1.0, 1.0)),
        "k": Axes("K D | *R G K D"),
        "log_decay": Axes("K D | *R G*g K D", "wide", high="0", usual=(-1.0, 0.0)),
    },
    result="Q K | *R G*g Q K",
    rows="*R",
    requires=("Q <= K", *SCALED),
    sums=True,
    read={
        "wall_transformer of flash-linear-attention": (
            "fla-core 0.6.0, fla/ops/wall_attn/naive.py:44-75; fla/layers/wall_attn.py:152-154"
        )
    },
)
def wall_logits(q: ArrayOf[T], k: ArrayOf[T], log_decay: ArrayOf[T], /, *, scale: float | None = None) -> T:
    r"""
    Return the logits of queries and keys whose channels decay from the key to the query.

    .. math:: z_{ij} = \sigma \sum_c q_{ic} \, k_{jc} \, e^{P_{tc} - P_{jc}}, \qquad P_{nc} = \sum_{l=0}^{n} g_{lc}, \qquad
        t = K - Q + i

    where q_i and k_j are query i and key j of a head, c is the channel, sigma the scale, g_l the logarithms of the decays of
    token l in the query's head, and t the token of query i: the queries are the last Q of the K tokens. So the decays of the
    tokens j + 1, ..., t count: the key's own does not, the query's does. A key after its query has the logit 0.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, H, Q, D)``
        Queries; R and H may be missing. Query head h, counted from 0, uses key head h G / H, rounded down.
    k : array, real floating, shape ``(*R, G, K, D)``
        Keys. H is a multiple of G.
    log_decay : array, float32 or wider, shape ``(*R, H, K, D)``
        g, at most 0, natural logarithms, of every token whose key is there. They belong to query heads. The model computes
        them as logsigmoid of a linear function of the layer's input. Give padding tokens 0.
    scale : float, optional
        sigma; None means 1/sqrt(D).

    Returns
    -------
    array, shape ``(*R, H, Q, K)``
        In the dtype of `q`. Mask keys after the query before the softmax: 0 does not hide them.

    Raises
    ------
    ValueError
        If H is not a multiple of G, there are more queries than keys, shapes do not fit, an array is not real floating,
        `scale` is not finite, or D is 0 and `scale` is None.

    Notes
    -----
    A query's own token has the logit of plain attention, whatever the decays. The scalar gate of flash-linear-attention is
    `forgetting_bias`, added to these logits after the scale. Unlike a gate that adds, a decay that is equal in all channels
    multiplies the logit. Packed texts may share one sum, since only differences count.

    Code that multiplies keys by e to the A - P, with A the sum at the first token of a chunk, overflows where a chunk decays
    by more than e to the 88: the decode path of flash-linear-attention 0.6.0 returns NaN there, with chunks of 64. Its training
    kernel limits that exponent, so that strong decays change the logit of a query and its own key.

    Examples
    --------
    >>> import numpy as np
    >>> decay = np.log(np.asarray([[0.5, 1.0], [0.5, 1.0], [0.25, 0.5]]))
    >>> wall_logits(np.asarray([[1.0, 1.0]]), np.ones((3, 2)), decay, scale=1.0).round(6).tolist()
    [[0.625, 0.75, 2.0]]
    """
    name = "wall_logits"
    xp = library(name, q=q, k=k, log_decay=log_decay)
    check_logits(name, q, k, None, scale)
    check_real(name, log_decay=log_decay)
    of_heads = repeat_heads(name, k, q.shape[-3]) if q.ndim > 2 else k
    shape = (*common_shape(tuple(q.shape[:-2]), tuple(of_heads.shape[:-2])), *k.shape[-2:])
    queries, keys = q.shape[-2], k.shape[-2]
    if queries > keys or tuple(log_decay.shape) != shape:
        msg = (
            f"{name}: log_decay must be (..., H, K, D), with query heads, and queries at most as many as keys; got shape "
            f"{tuple(log_decay.shape)} for q {tuple(q.shape)} and k {tuple(k.shape)}."
        )
        raise ValueError(msg)
    work = wide(q.dtype, xp)
    sums = decay_sums(cast(log_decay, matrix_dtype(log_decay)))
    shown = is_before(q, queries, keys)
    products = decayed_products(cast(q, work), sums[..., keys - queries :, :], shown, cast(of_heads, work), sums)
    return cast(scaled(products, q, scale), q.dtype)


def is_before(q: Array, queries: int, keys: int) -> Array:
    """Return for every query and key, beside `q`, whether the key is at most the query; queries are the last tokens."""
    tokens = Beside(q).arange(0, keys, 1, dtype=index_dtype(q))
    return tokens[keys - queries :, None] >= tokens


@part()
def decay_sums(log_decay: Array, /) -> Array:
    """Return the sum of each token's logarithms and those before it."""
    return namespace(log_decay).cumulative_sum(log_decay, axis=-2)


@in_blocks(q=(0, 1), of_queries=(0, 1), shown=(0, 1))
def decayed_products(q: Array, of_queries: Array, shown: Array, k: Array, sums: Array, /) -> Array:
    """Return the products of queries and keys, each channel times the decay between the two; 0 where the key comes later."""
    xp = namespace(q)
    between = xp.where(shown[..., None], of_queries[..., :, None, :] - sums[..., None, :, :], beside(0.0, sums, sums.dtype))
    decay = cast(xp.exp(between), q.dtype)
    return xp.where(shown, xp.sum(q[..., :, None, :] * k[..., None, :, :] * decay, axis=-1), beside(0.0, q, q.dtype))
