"""Sandwich: the sum of cosines that sinusoidal encodings give. Source: Chi et al., arXiv:2212.10356, section 5."""

from posref.core.angles import cos_sin
from posref.core.arrays import Array, DType, Namespace, beside, cast, constants, library, namespace, result_dtype, wide
from posref.core.checks import check_integer, check_positions, check_positive, check_tokens
from posref.core.products import matmul
from posref.spec import Axes, Integer, Real, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Sandwich",
    idea=(
        "The product of two sinusoidal encodings depends on their distance only, and falls with it about like a logarithm. "
        "Sandwich adds this number to the logits, divided by more for later heads. Nothing is learned."
    ),
    longer="The bias falls like that of KERPLE and T5, and the model uses information from beyond the training length.",
    family="bias",
    source="arXiv:2212.10356, section 5",
    domains={"heads": Integer(1), "dim": Integer(2, step=2, usual=16), "base": Real(0.0, usual=(2.0, 1e5))},
    arrays={"q_positions": Axes("~*B Q", "position"), "k_positions": Axes("~*B K", "position")},
    result="*B heads Q K",
    rows="*B Q",
    invariants=("decode",),
    sums=True,
    read={
        "NeMo": (
            "NVIDIA/NeMo@8cfedd7, "
            "nemo/collections/nlp/modules/common/megatron/position_embedding/sandwich_relative_position_embedding.py:58-75"
        )
    },
)
def sandwich(
    q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, heads: int, dim: int, base: float = 10000.0,
    dtype: DType | None = None,
) -> T:  # fmt: skip
    r"""
    Return the bias of Sandwich: a sum of cosines of the distance, divided by a number for each head.

    .. math::

        B_{h,i,j} = \frac{H}{8h} \left( \sum_{k=1}^{d/2} \cos\left((p_i - p_j) \, b^{-2k/d}\right) - \frac{d}{2} \right),
        \qquad h = 1 \dots H

    where p_i and p_j are the positions of query i and key j, and d and b are `dim` and `base`. At distance 0 it is 0.

    Parameters
    ----------
    q_positions : array, integer or at least float32, shape ``(*B, Q)``
        Positions of the queries, in tokens.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    k_positions : array, integer or at least float32, shape ``(*B, K)``
        Positions of the keys, in tokens.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    heads : int
        H, the number of heads in the whole model (not in one shard), at least 1.
    dim : int
        d, even, the number of channels of the sinusoidal encoding. It need not be that of the model.
        NeMo takes the size of a head.
    base : float
        b, 10000 in the paper.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*B, H, Q, K)``
        In logit units. Add it after the 1/sqrt(D) scale and before the softmax. It does not replace a mask.

    Raises
    ------
    ValueError
        If `heads` is less than 1, `dim` is not even or less than 2, `base` is not positive, or positions are half precision
        or have no axis.

    Notes
    -----
    The frequencies begin with k = 1, as in NeMo; `sinusoidal` begins with k = 0. The bias is the same on both sides of the
    query. For a causal model NeMo has distance 0 for keys after the query, which its mask hides. Subtracting d/2 changes
    nothing after a softmax. The sum is computed as the product of two tables of cosines and sines, which costs no memory for
    each pair and frequency.

    Examples
    --------
    >>> import numpy as np
    >>> sandwich(np.asarray([3]), np.arange(4), heads=4, dim=8)[0].round(4).tolist()
    [[-0.0226, -0.0101, -0.0025, 0.0]]
    """
    name = "sandwich"
    check_positions(name, "q_positions", q_positions)
    check_positions(name, "k_positions", k_positions)
    check_tokens(name, q_positions=q_positions, k_positions=k_positions)
    heads, dim = check_integer(name, "heads", heads, 1), check_integer(name, "dim", dim, 2)
    base = check_positive(name, "base", base)
    if dim % 2:
        msg = f"{name}: dim must be even (a sine and a cosine for each frequency); got {dim}."
        raise ValueError(msg)
    xp = library(name, q_positions=q_positions, k_positions=k_positions)
    dtype = result_dtype(name, q_positions, dtype)
    frequencies = sandwich_frequencies(dim, base, constants(xp))
    total = sandwich_cosines(q_positions, k_positions, frequencies, dtype=dtype)
    below = total - beside(dim / 2, total, total.dtype)
    h = beside([[[8.0 * n]] for n in range(1, heads + 1)], total, total.dtype)
    return cast(below[..., None, :, :] / (h / heads), dtype)


@part()
def sandwich_frequencies(dim: int, base: float, c: Namespace, /) -> Array:
    """Return ``base**(-2k/dim)`` for k from 1 to ``dim/2``."""
    exponents = c.arange(2, dim + 1, 2, dtype=c.float64) / dim
    return c.pow(c.asarray(float(base), dtype=c.float64), -exponents)


@part()
def sandwich_cosines(q_positions: Array, k_positions: Array, frequencies: Array, /, *, dtype: DType) -> Array:
    """Return the sum over all frequencies of the cosine of distance times frequency."""
    xp = namespace(q_positions, k_positions)
    q, k = (xp.concat(cos_sin(p, frequencies, dtype=wide(dtype, xp)), axis=-1) for p in (q_positions, k_positions))
    return matmul(q, xp.matrix_transpose(k))
