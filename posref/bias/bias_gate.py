"""The gate of WavLM's relative position bias. Source: Chen et al., arXiv:2110.13900, section III.A; Chi et al., XLM-E."""

from posref.core.arrays import Array, by_sign, cast, library, namespace, wide
from posref.core.checks import check_real
from posref.core.products import matmul
from posref.spec import Axes, encoding, part
from posref.types import ArrayOf, T

TERMS = 4  # outputs of the linear map that are added for each of the two gates


@encoding(
    title="Gate of a relative position bias (WavLM)",
    idea=(
        "How much a token's distances should count may depend on what the token is. So a small network of its hidden state "
        "gives one factor for each head, and T5's bias of that query is multiplied by it."
    ),
    tool=True,
    family="bias",
    source="arXiv:2110.13900, section III.A",
    models=("WavLM",),
    arrays={
        "x": Axes("*B H Q D", usual=(-1.0, 1.0)),
        "weight": Axes("8 D", usual=(-1.0, 1.0)),
        "offset": Axes("8", usual=(-1.0, 1.0)),
        "constant": Axes("H"),
    },
    result="*B H Q",
    rows="*B H Q",
    sums=True,
    noun="gates",
    read={"WavLM": "transformers 5.23.0, models/wavlm/modeling_wavlm.py:172-185"},
)
def bias_gate(x: ArrayOf[T], weight: ArrayOf[T], offset: ArrayOf[T], constant: ArrayOf[T], /) -> T:
    r"""
    Return the factor by which each query multiplies the relative position bias of each head.

    .. math:: g = a \, (b \, c_h - 1) + 2, \qquad a = \sigma(s_0 + s_1 + s_2 + s_3), \quad b = \sigma(s_4 + s_5 + s_6 + s_7),
        \qquad s = W x + \beta

    where x is the part of a token's hidden state that belongs to head h, W the `weight`, beta the `offset`, both shared by all
    heads, c_h the `constant` of the head, and sigma the sigmoid.

    Parameters
    ----------
    x : array, real floating, shape ``(*B, H, Q, D)``
        The input of the attention layer, split into heads: not the queries, which are projected.
    weight : array, real floating, shape ``(8, D)``
        W, learned: ``gru_rel_pos_linear.weight`` in WavLM, one for each layer.
    offset : array, real floating, shape ``(8,)``
        beta, learned: ``gru_rel_pos_linear.bias``.
    constant : array, real floating, shape ``(H,)``
        c, learned: ``gru_rel_pos_const``, which is 1 at first. One row of (1, H, 1, 1) there.

    Returns
    -------
    array, shape ``(*B, H, Q)``
        Factors, in the dtype of `x`: ``gate[..., None] * bias`` is what WavLM adds after the 1/sqrt(D) scale. With c of 1 they
        are between 1 and 2.

    Raises
    ------
    ValueError
        If an array is not real floating, `x` has fewer than three axes, or the shapes of the others do not fit it.

    Notes
    -----
    WavLM's bias is `t5_bias` with 320 buckets and `max_distance` 800, bidirectional. Its first layer has the table. All layers
    share that bias, and each multiplies it by a gate of its own: never pass on the bias that is multiplied already. The paper
    calls it the gated relative position bias, with a reset and an update gate.

    Examples
    --------
    >>> import numpy as np
    >>> x, zeros = np.asarray([[[1.0], [-1.0]]]), np.zeros(8)
    >>> bias_gate(x, np.zeros((8, 1)), zeros, np.asarray([1.0])).tolist()
    [[1.75, 1.75]]
    """
    name = "bias_gate"
    xp = library(name, x=x, weight=weight, offset=offset, constant=constant)
    check_real(name, x=x, weight=weight, offset=offset, constant=constant)
    if x.ndim < 3:
        msg = f"{name}: x must be (..., heads, queries, channels); got shape {tuple(x.shape)}."
        raise ValueError(msg)
    shapes = {"weight": (2 * TERMS, x.shape[-1]), "offset": (2 * TERMS,), "constant": (x.shape[-3],)}
    for argument, array in (("weight", weight), ("offset", offset), ("constant", constant)):
        if tuple(array.shape) != shapes[argument]:
            msg = f"{name}: {argument} must have shape {shapes[argument]}, with x of {x.shape}; got {tuple(array.shape)}."
            raise ValueError(msg)
    inputs, w, beta, c = (cast(array, wide(x.dtype, xp)) for array in (x, weight, offset, constant))
    return cast(gate_of(matmul(inputs, xp.matrix_transpose(w)) + beta, c[:, None]), x.dtype)


@part()
def gate_of(states: Array, constant: Array, /) -> Array:
    """Return the gate of eight numbers, (..., H, Q, 8), and the constants of heads, (H, 1)."""
    xp = namespace(states)
    a, b = (sigmoid(xp.sum(half, axis=-1)) for half in (states[..., :TERMS], states[..., TERMS:]))
    return a * (b * constant - 1.0) + 2.0


def sigmoid(x: Array, /) -> Array:
    """Return 1 / (1 + exp(-x)), with exponentials that do not overflow."""
    xp = namespace(x)
    below, _, size = by_sign(x)
    return xp.exp(below) / (xp.exp(size) + 1.0)
