"""Dynamic position bias: a network of the distance. Source: Wang et al., CrossFormer, arXiv:2108.00154, section 3.3."""

from typing import Literal, get_args

from posref.core.arrays import Array, beside, by_sign, cast, distances, library, namespace, wide, with_axis_moved
from posref.core.checks import check_positions, check_real, check_tokens, check_word
from posref.core.products import matmul
from posref.spec import Axes, OneOf, encoding, part
from posref.types import ArrayOf, T

Distance = Literal["linear", "log"]
DISTANCES: tuple[Distance, ...] = get_args(Distance)


@encoding(
    title="Dynamic position bias",
    idea=(
        "A small network is given the distance of query and key, with its sign, and returns a bias for each head. So there is "
        "no table that ends: the network also answers for distances that no text in training had."
    ),
    family="bias",
    source="arXiv:2108.00154, section 3.3",
    domains={"distance": OneOf(DISTANCES)},
    arrays={
        "q_positions": Axes("~*B Q", "position"),
        "k_positions": Axes("~*B K", "position"),
        "w_in": Axes("m", usual=(-1.0, 1.0)),
        "b_in": Axes("m", usual=(-1.0, 1.0)),
        "w_hidden": Axes("L m m", usual=(-1.0, 1.0)),
        "b_hidden": Axes("L m", usual=(-1.0, 1.0)),
        "w_out": Axes("H m", usual=(-1.0, 1.0)),
        "b_out": Axes("H", usual=(-1.0, 1.0)),
    },
    result="*B H Q K",
    rows="*B Q K",
    invariants=("shift invariant", "decode"),
    sums=True,
    read={
        "x-transformers": "x-transformers 2.31.10, x_transformers/x_transformers.py:580-629, 2925",
        "x-transformers with `dynamic_pos_bias_log_distance`": (
            "x-transformers 2.31.10, x_transformers/x_transformers.py:620-621"
        ),
        "vit-pytorch": "vit-pytorch 1.26.11, vit_pytorch/crossformer.py:110-115, 146-150",
    },
)
def dynamic_position_bias(
    q_positions: ArrayOf[T], k_positions: ArrayOf[T], w_in: ArrayOf[T], b_in: ArrayOf[T], w_hidden: ArrayOf[T],
    b_hidden: ArrayOf[T], w_out: ArrayOf[T], b_out: ArrayOf[T], /, *, distance: Distance,
) -> T:  # fmt: skip
    r"""
    Return the dynamic position bias: a network with SiLU, applied to the distance of query and key.

    .. math::

        B_{h,i,j} = W^{out}_h \cdot x^{(L)}_{ij} + b^{out}_h, \qquad
        x^{(l)} = \mathrm{SiLU}(W_l \, x^{(l-1)} + b_l), \qquad x^{(0)} = \mathrm{SiLU}(w^{in} s_{ij} + b^{in})

    where s_ij is the distance p_i - p_j of the positions of query i and key j, or its logarithm, W_l and b_l are those of layer
    l = 1 ... L, and SiLU(x) is x times its sigmoid.

    Parameters
    ----------
    q_positions : array, integer or at least float32, shape ``(*B, Q)``
        Positions of the queries, in tokens.
    k_positions : array, integer or at least float32, shape ``(*B, K)``
        Positions of the keys, in tokens.
    w_in : array, real floating, shape ``(m,)``
        Weights of the first layer, learned. PyTorch stores them as ``(m, 1)``.
    b_in : array, real floating, shape ``(m,)``
        Biases of the first layer, learned.
    w_hidden : array, real floating, shape ``(L, m, m)``
        Weights of the L layers between first and last, learned. x-transformers has one such layer, and more if
        `dynamic_pos_bias_mlp_depth` is above 2. L may be 0.
    b_hidden : array, real floating, shape ``(L, m)``
        Biases of these layers, learned.
    w_out : array, real floating, shape ``(H, m)``
        Weights of the last layer, learned.
    b_out : array, real floating, shape ``(H,)``
        Biases of the last layer, learned.
    distance : {"linear", "log"}
        What the network is given.

        - ``"linear"``: The distance in tokens, below 0 for keys after the query. Used by x-transformers.
        - ``"log"``: The sign of the distance times ln(1 + its absolute value). Used by x-transformers with
          `dynamic_pos_bias_log_distance`.

    Returns
    -------
    array, shape ``(*B, H, Q, K)``
        In the dtype of `w_out`, in logit units. Add it after the 1/sqrt(D) scale and before the softmax. It does not
        replace a mask.

    Raises
    ------
    ValueError
        If a shape does not fit, a learned array is not real floating, `distance` is unknown, or positions are half precision or
        have no axis.

    Notes
    -----
    x-transformers can normalize the hidden layers before SiLU (`dynamic_pos_bias_norm`, off): not covered here. CrossFormer
    gives its network two offsets, of rows and columns, has layer norms and ReLU, and one bias for all heads: not covered
    either. vit-pytorch 1.26.11 gives CrossFormer's network offsets from -w to w but looks them up as if they began at 1 - w
    (crossformer.py, lines 101-103 and 143-147), so that a cell's bias with itself is that of another offset.

    Examples
    --------
    >>> import numpy as np
    >>> one, none = np.asarray([1.0]), (np.zeros((0, 1, 1)), np.zeros((0, 1)))
    >>> places = np.asarray([2]), np.asarray([1, 2, 3])
    >>> dynamic_position_bias(*places, one, 0 * one, *none, one[:, None], one, distance="linear").round(4).tolist()
    [[[1.7311, 1.0, 0.7311]]]
    """
    name = "dynamic_position_bias"
    check_word(name, "distance", distance, DISTANCES)
    check_positions(name, "q_positions", q_positions)
    check_positions(name, "k_positions", k_positions)
    check_tokens(name, q_positions=q_positions, k_positions=k_positions)
    learned = {"w_in": w_in, "b_in": b_in, "w_hidden": w_hidden, "b_hidden": b_hidden, "w_out": w_out, "b_out": b_out}
    check_real(name, **learned)
    (heads, m), layers = tuple(w_out.shape) if w_out.ndim == 2 else (0, 0), w_hidden.shape[0] if w_hidden.ndim else 0
    expected = {
        "w_out": (heads, m), "b_out": (heads,), "w_in": (m,), "b_in": (m,), "w_hidden": (layers, m, m), "b_hidden": (layers, m)
    }  # fmt: skip
    for argument, shape in expected.items():
        if tuple(learned[argument].shape) != shape:
            msg = f"{name}: {argument} must have shape {shape}, with w_out (heads, m); got {tuple(learned[argument].shape)}."
            raise ValueError(msg)
    xp = library(name, q_positions=q_positions, k_positions=k_positions, **learned)
    work = wide(w_out.dtype, xp)
    apart = cast(distances(q_positions, k_positions), work)
    measured = log_distance(apart) if distance == "log" else apart
    bias = distance_network(measured, *(cast(x, work) for x in (w_in, b_in, w_hidden, b_hidden, w_out, b_out)))
    return cast(with_axis_moved(bias, -1, -3), w_out.dtype)


@part(noun="logarithms")
def log_distance(apart: Array, /) -> Array:
    """Return the sign of each distance times the logarithm of one plus its absolute value."""
    xp = namespace(apart)
    zero = beside(0.0, apart, apart.dtype)
    return xp.log(xp.maximum(apart, zero) + 1.0) - xp.log(xp.maximum(-apart, zero) + 1.0)


@part()
def distance_network(
    given: Array, w_in: Array, b_in: Array, w_hidden: Array, b_hidden: Array, w_out: Array, b_out: Array, /
) -> Array:
    """Return the outputs of the network, with the heads along the last axis."""
    xp = namespace(given)
    hidden = silu(given[..., None] * w_in + b_in)
    for layer in range(w_hidden.shape[0]):
        hidden = silu(matmul(hidden, xp.matrix_transpose(w_hidden[layer, ...])) + b_hidden[layer, :])
    return matmul(hidden, xp.matrix_transpose(w_out)) + b_out


def silu(x: Array, /) -> Array:
    """Return x times its sigmoid, with exponentials that do not overflow."""
    xp = namespace(x)
    below, _, size = by_sign(x)
    return x * (xp.exp(below) / (xp.exp(size) + 1.0))
