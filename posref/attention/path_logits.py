"""Logits of PaTH attention. Source: Yang et al., arXiv:2505.16381, section 2."""

from posref.core.arrays import Array, beside, cast, library, namespace, number_system, repeat_heads, wide
from posref.core.checks import check_real
from posref.core.matrices import matrix_dtype
from posref.spec import Axes, Real, encoding
from posref.types import ArrayOf, T

from .attention_logits import SCALED, check_logits, scaled
from .wall_logits import is_before


@encoding(
    title="PaTH attention",
    idea=(
        "Every token has a direction and a strength, computed from its content. Between a key and a query stand the tokens "
        "after the key, and each of them takes away a part of what lies along its direction. Where RoPE rotates by the "
        "distance, PaTH transforms by what stands between."
    ),
    family="attention",
    source="arXiv:2505.16381, section 2",
    models=("path_attn of flash-linear-attention",),
    domains={"scale": Real(0, optional=True, usual=(2**-6, 2))},
    arrays={
        "q": Axes("Q D | *R G*g Q D", usual=(-1.0, 1.0)),
        "k": Axes("K D | *R G K D"),
        "w": Axes("K D | *R G K D", "wide", usual=(-0.375, 0.375)),
        "betas": Axes("K | *R G K", "wide", low="0", high="2", usual=(0.25, 1.75)),
    },
    result="Q K | *R G*g Q K",
    rows="*R",
    requires=("Q <= K", *SCALED),
    sums=True,
    read={
        "path_attn of flash-linear-attention": (
            "fla-core 0.6.0, fla/ops/path_attn/naive.py:39-97; fla/layers/path_attn.py:110-126, 147-158"
        )
    },
)
def path_logits(q: ArrayOf[T], k: ArrayOf[T], w: ArrayOf[T], betas: ArrayOf[T], /, *, scale: float | None = None) -> T:
    r"""
    Return the logits of queries and keys with a Householder-like matrix for every token between them.

    .. math:: z_{ij} = \sigma \, q_i^\top H_t H_{t-1} \cdots H_{j+1} k_j, \qquad H_l = I - \beta_l w_l w_l^\top, \qquad
        t = K - Q + i

    where q_i and k_j are query i and key j of a head, sigma is the scale, and t the token of query i: the queries are the last
    Q of the K tokens. The key's own matrix does not count, the query's does. A key after its query has the logit 0.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, H, Q, D)``
        Queries; R and H may be missing. Query head h, counted from 0, uses key head h G / H, rounded down.
    k : array, real floating, shape ``(*R, G, K, D)``
        Keys. H is a multiple of G.
    w : array, float32 or wider, shape ``(*R, G, K, D)``
        w, the direction of every token. Models make its Euclidean norm 1, before the call.
    betas : array, float32 or wider, shape ``(*R, G, K)``
        beta of every token, from 0 to 2. Models compute it as 2 sigmoid of a linear function of the layer's input. With w of
        norm 1, beta = 2 reflects, and 0 changes nothing: give padding tokens 0.
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
    A query's own token has the logit of plain attention. The optional forget gate adds sigma times `forgetting_bias`: in
    flash-linear-attention the gate is multiplied by the scale, unlike that of FoX and of `wall_logits`. A decode step there
    multiplies every cached key by the new token's matrix. Keys must stay float32 for that: in bfloat16 they are off by 2e-2
    after 64 steps. RoPE is a special case, with directions that alternate between two in a plane and beta = 2.

    Examples
    --------
    >>> import numpy as np
    >>> w = np.asarray([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> path_logits(np.asarray([[1.0, 1.0]]), np.ones((3, 2)), w, np.asarray([2.0, 2.0, 0.5]), scale=1.0).tolist()
    [[-0.5, 1.5, 2.0]]
    """
    name = "path_logits"
    xp = library(name, q=q, k=k, w=w, betas=betas)
    check_logits(name, q, k, None, scale)
    check_real(name, w=w, betas=betas)
    queries, keys = q.shape[-2], k.shape[-2]
    if queries > keys or w.shape != k.shape or tuple(betas.shape) != tuple(k.shape[:-1]):
        msg = (
            f"{name}: w must have the shape of k, betas too without its last axis, and queries be at most as many as keys; got "
            f"shapes {tuple(w.shape)} and {tuple(betas.shape)} for q {tuple(q.shape)} and k {tuple(k.shape)}."
        )
        raise ValueError(msg)
    heads = q.shape[-3] if q.ndim > 2 else 1
    work, exact = wide(q.dtype, xp), matrix_dtype(q)
    of_keys = (repeat_heads(name, cast(x, dtype), heads) for x, dtype in ((k, work), (w, exact), (betas[..., None], exact)))
    products = path_products(cast(q, exact), is_before(q, queries, keys), *of_keys)
    return cast(scaled(products, q, scale), q.dtype)


def path_products(q: Array, shown: Array, k: Array, w: Array, betas: Array, /) -> Array:
    """Return the products of keys and queries, which one token after another transforms; 0 where the key comes later."""
    xp, zero = namespace(q), beside(0.0, k, k.dtype)
    if not k.shape[-2]:
        return xp.sum(cast(q, k.dtype)[..., :, None, :] * k[..., None, :, :], axis=-1)
    columns: list[Array] = []
    for j in range(k.shape[-2] - 1, -1, -1):
        seen = shown[:, j : j + 1]
        product = xp.sum(cast(q, k.dtype) * k[..., j : j + 1, :], axis=-1, keepdims=True)
        columns.append(xp.where(seen, product, zero))
        strength = xp.where(seen, betas[..., j : j + 1, :], beside(0.0, q, q.dtype))
        q = without(q, w[..., j : j + 1, :], strength)
    return (
        xp.concat(columns[::-1], axis=-1)
        if columns
        else xp.sum(cast(q, k.dtype)[..., :, None, :] * k[..., None, :, :], axis=-1)
    )


def without(x: Array, w: Array, strength: Array) -> Array:
    """Return x - strength (x . w) w. The bounds of errors are those of norms: else they would grow with each of many steps."""
    xp = namespace(x)
    changed = x - strength * xp.sum(x * w, axis=-1, keepdims=True) * w
    system = number_system(xp)
    return changed if system is None else system.without(x, w, strength, changed)
