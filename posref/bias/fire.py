"""FIRE: functional interpolation for relative positions. Source: Li et al., arXiv:2310.04418, section 4."""

from posref.core.arrays import Array, beside, cast, distances, library, namespace, wide, with_axis_moved
from posref.core.checks import check_positions, check_positive, check_real, check_tokens
from posref.core.products import matmul
from posref.spec import Axes, Real, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Functional interpolation for relative positions (FIRE)",
    idea=(
        "The distance of a key is divided by the query's position, both on a logarithmic scale. The share lies between 0 and 1 "
        "at every length, and a small network makes a bias of it for each head. So a longer text shows the network nothing new."
    ),
    longer="Generalizes to longer texts; the share of the distance stays within the range of training.",
    family="bias",
    source="arXiv:2310.04418, section 4",
    domains={"eps": Real(0.0, usual=(1e-6, 1e-2))},
    arrays={
        "q_positions": Axes("~*B Q", "position"),
        "k_positions": Axes("~*B K", "position"),
        "w1": Axes("m"),
        "b1": Axes("m"),
        "w2": Axes("H m"),
        "b2": Axes("H"),
        "c": Axes("1", positive=True, usual=(0.0, 2.0)),
        "threshold": Axes("1", positive=True, usual=(1.0, 4.0)),
    },
    result="*B H Q K",
    rows="*B Q K",
    invariants=("decode",),
    sums=True,
)
def fire(
    q_positions: ArrayOf[T], k_positions: ArrayOf[T], w1: ArrayOf[T], b1: ArrayOf[T], w2: ArrayOf[T], b2: ArrayOf[T],
    c: ArrayOf[T], threshold: ArrayOf[T], /, *, eps: float = 1e-6,
) -> T:  # fmt: skip
    r"""
    Return FIRE's bias: a network of one hidden layer, applied to the distance as a share of the query's position.

    .. math::

        B_{h,i,j} = \sum_{n=1}^{m} W_{2,hn} \max(W_{1,n} \, s_{ij} + b_{1,n}, 0) + b_{2,h}, \qquad
        s_{ij} = \frac{\psi(|p_i - p_j|)}{\psi(\max(p_i, L)) + \varepsilon}, \qquad \psi(x) = \ln(1 + c \, x)

    where p_i and p_j are the positions of query i and key j, h is the head, and L, c and ε are `threshold`, `c` and `eps`.

    Parameters
    ----------
    q_positions : array, integer or at least float32, shape ``(*B, Q)``
        Positions of the queries, in tokens. They are counted from the start of the text, at 0: the bias depends on them, not
        only on the distance.
    k_positions : array, integer or at least float32, shape ``(*B, K)``
        Positions of the keys, in tokens.
    w1 : array, real floating, shape ``(m,)``
        Weights of the first layer, learned. PyTorch stores them as ``(m, 1)``.
    b1 : array, real floating, shape ``(m,)``
        Biases of the first layer, learned.
    w2 : array, real floating, shape ``(H, m)``
        Weights of the second layer, learned.
    b2 : array, real floating, shape ``(H,)``
        Biases of the second layer, learned.
    c : array, real floating, shape ``(1,)``
        c, learned, above 0. It begins at 0.1. The code takes its absolute value: pass that.
    threshold : array, real floating, shape ``(1,)``
        L, in tokens, above 0. Before it, the share is of L and not of the query's position. It is the absolute value of a
        learned multiplier, which begins at 1, times a fixed length, 512.
    eps : float
        ε, above 0. It is added to the logarithm, not inside it.

    Returns
    -------
    array, shape ``(*B, H, Q, K)``
        In the dtype of `w2`, in logit units. Add it after the 1/sqrt(D) scale and before the softmax. It does not
        replace a mask.

    Raises
    ------
    ValueError
        If a shape does not fit, a learned array is not real floating, `eps` is not positive, or positions are half precision or
        have no axis.

    Notes
    -----
    The network has 32 hidden units and ReLU. The authors of DAPE (chuanyang-Zheng/DAPE) use this, and LeakyReLU where they
    combine FIRE with DAPE. Their code has distance 0 for keys after the query, which a causal mask hides; here these keys have
    their distance too. It also rounds the share to the dtype of the logits.

    Examples
    --------
    >>> import numpy as np
    >>> one, half = np.asarray([1.0]), np.asarray([0.5])
    >>> fire(np.asarray([3]), np.arange(4), one, half, np.asarray([[2.0]]), one, one, one)[0].round(4).tolist()
    [[4.0, 3.585, 3.0, 2.0]]
    """
    name = "fire"
    check_positions(name, "q_positions", q_positions)
    check_positions(name, "k_positions", k_positions)
    check_tokens(name, q_positions=q_positions, k_positions=k_positions)
    learned = {"w1": w1, "b1": b1, "w2": w2, "b2": b2, "c": c, "threshold": threshold}
    check_real(name, **learned)
    eps = check_positive(name, "eps", eps)
    heads, hidden = tuple(w2.shape) if w2.ndim == 2 else (0, 0)
    expected = {"w1": (hidden,), "b1": (hidden,), "w2": (heads, hidden), "b2": (heads,), "c": (1,), "threshold": (1,)}
    for argument, shape in expected.items():
        if tuple(learned[argument].shape) != shape or w2.ndim != 2:
            msg = f"{name}: {argument} must have shape {shape}, with w2 (heads, hidden); got {tuple(learned[argument].shape)}."
            raise ValueError(msg)
    xp = library(name, q_positions=q_positions, k_positions=k_positions, **learned)
    work = wide(w2.dtype, xp)
    apart = cast(xp.abs(distances(q_positions, k_positions)), work)
    share = fire_share(apart, cast(q_positions, work), cast(c, work), cast(threshold, work), eps=eps)
    layers = (cast(x, work) for x in (w1, b1, w2, b2))
    return cast(with_axis_moved(fire_network(share, *layers), -1, -3), w2.dtype)


@part(noun="share")
def fire_share(apart: Array, q_positions: Array, c: Array, threshold: Array, /, *, eps: float) -> Array:
    """Return the logarithm of the distance, as a share of the logarithm of the query's position or of the threshold."""
    xp = namespace(apart)
    length = xp.log(c * xp.maximum(q_positions, threshold) + 1.0) + eps
    return xp.log(c * apart + 1.0) / length[..., :, None]


@part()
def fire_network(share: Array, w1: Array, b1: Array, w2: Array, b2: Array, /) -> Array:
    """Return the outputs of the network, with the heads along the last axis."""
    xp = namespace(share)
    hidden = xp.maximum(share[..., None] * w1 + b1, beside(0.0, share, share.dtype))
    return matmul(hidden, xp.matrix_transpose(w2)) + b2
