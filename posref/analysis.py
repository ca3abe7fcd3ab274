r"""
Measures of an encoding: distances and correlations of its rows, wavelengths, decay with distance, and errors of angles.

Every function takes arrays of any array library and returns arrays of the same library. `posref.plots` only draws what these
functions return. A *table* has shape (T, d): row p is the encoding of position p.
"""

from math import pi

from posref.core.arrays import Array, library, namespace, wide
from posref.core.checks import check_integer, check_real
from posref.types import ArrayOf, T

__all__ = [
    "angle_error", "beyond_training", "block_products", "by_distance", "correlation_matrix", "decay", "decay_bound",
    "distance_matrix", "distances_from", "entropy", "frequency_ratio", "inner_products", "logit_terms", "pairs", "resolution",
    "rounded", "row_distance", "wavelengths",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return only the public names, without what is imported."""
    return __all__


def distance_matrix(table: ArrayOf[T], /) -> T:
    r"""
    Return the Euclidean distance between every two rows.

    .. math:: D_{pq} = \lVert e_p - e_q \rVert

    Parameters
    ----------
    table : array, real floating, shape ``(T, d)``
        e, one row for each position.

    Returns
    -------
    array, shape ``(T, T)``
        In the dtype of `table`, or float32 if that is narrower.

    Raises
    ------
    ValueError
        If `table` is not real floating, or not 2-D.

    Examples
    --------
    >>> import numpy as np
    >>> distance_matrix(np.asarray([[0.0, 0.0], [3.0, 4.0]])).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    table = _table("distance_matrix", table)
    xp = namespace(table)
    apart = table[:, None, :] - table[None, :, :]
    return xp.sqrt(xp.sum(apart * apart, axis=-1))


def distances_from(table: ArrayOf[T], chosen: tuple[int, ...], /) -> T:
    r"""
    Return the Euclidean distance from some rows to all rows, shape ``(len(chosen), T)``: rows of `distance_matrix`.

    Raises
    ------
    ValueError
        If `table` is not real floating or not 2-D, or a chosen row is not in the table.

    Examples
    --------
    >>> import numpy as np
    >>> distances_from(np.asarray([[0.0], [3.0], [5.0]]), (1,)).tolist()
    [[3.0, 0.0, 2.0]]
    """
    table = _table("distances_from", table)
    xp = namespace(table)
    for row in chosen:
        if check_integer("distances_from", "chosen", row, 0) >= table.shape[0]:
            msg = f"distances_from: chosen must be rows of the table, below {table.shape[0]}; got {row}."
            raise ValueError(msg)
    apart = xp.stack([table - table[row, :] for row in chosen], axis=0)
    return xp.sqrt(xp.sum(apart * apart, axis=-1))


def correlation_matrix(table: ArrayOf[T], /) -> T:
    r"""
    Return Pearson's correlation between every two rows, over their channels, shape ``(T, T)``.

    .. math:: C_{pq} = \frac{(e_p - \bar e_p) \cdot (e_q - \bar e_q)}
        {\lVert e_p - \bar e_p \rVert \, \lVert e_q - \bar e_q \rVert}

    where :math:`e_p` is row p of the table and :math:`\bar e_p` its mean. For a row of equal values the result is NaN.

    Raises
    ------
    ValueError
        If `table` is not real floating, or not 2-D.

    Examples
    --------
    >>> import numpy as np
    >>> correlation_matrix(np.asarray([[1.0, 3.0], [2.0, 6.0], [1.0, 0.0]])).round(6).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    table = _table("correlation_matrix", table)
    xp = namespace(table)
    centred = table - xp.mean(table, axis=-1, keepdims=True)
    products = xp.sum(centred[:, None, :] * centred[None, :, :], axis=-1)
    lengths = xp.sqrt(xp.sum(centred * centred, axis=-1))
    both = lengths[:, None] * lengths[None, :]
    return xp.where(both > 0, products, xp.asarray(float("nan"), dtype=products.dtype)) / xp.where(both > 0, both, both + 1)


def pairs(matrix: ArrayOf[T], /) -> T:
    """
    Return the entries of a symmetric matrix above its diagonal, row by row: one number for every pair p < q.

    Use it to plot the distances of pairs against their correlations.

    Raises
    ------
    ValueError
        If `matrix` is not square.

    Examples
    --------
    >>> import numpy as np
    >>> pairs(np.asarray([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])).tolist()
    [1.0, 2.0, 3.0]
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        msg = f"pairs: matrix must be square; got shape {tuple(matrix.shape)}."
        raise ValueError(msg)
    rows = [matrix[p, p + 1 :] for p in range(matrix.shape[0])]
    return namespace(matrix).concat(rows or [matrix[:0, 0]], axis=0)


def inner_products(table: ArrayOf[T], /, *, middle: int, wq: ArrayOf[T] | None = None, wk: ArrayOf[T] | None = None) -> T:
    r"""
    Return the inner product of one row with every row, as attention computes it.

    .. math:: P_n = (W_Q e_c) \cdot (W_K e_{c+n})

    where e_p is row p of the table and c is `middle`. Without matrices it is :math:`e_c \cdot e_{c+n}`. For sinusoids that
    depends only on the offset n, is symmetric in n and decays. Random matrices destroy all three properties.

    Parameters
    ----------
    table : array, real floating, shape ``(T, d)``
    middle : int
        c, a row of the table.
    wq, wk : array, real floating, shape ``(m, d)``, optional
        The matrices W_Q and W_K: both or neither.

    Returns
    -------
    array, shape ``(T,)``
        For rows 0 to T - 1, so for offsets -c to T - 1 - c.

    Raises
    ------
    ValueError
        If `table` is not real floating or not 2-D, `middle` is not a row of it, or only one matrix is given.

    Examples
    --------
    >>> import numpy as np, posref
    >>> table = posref.sinusoidal(np.arange(5), 8, layout="interleaved")
    >>> inner_products(table, middle=2).round(3).tolist()
    [2.564, 3.535, 4.0, 3.535, 2.564]
    """
    table = _table("inner_products", table)
    if check_integer("inner_products", "middle", middle, 0) >= table.shape[0]:
        msg = f"inner_products: middle must be a row of the table, below {table.shape[0]}; got {middle}."
        raise ValueError(msg)
    if (wq is None) != (wk is None):
        msg = "inner_products: wq and wk must be given together; got one of them."
        raise ValueError(msg)
    xp = namespace(table)
    if wq is None or wk is None:
        return xp.matmul(table, table[middle, :])
    return xp.matmul(xp.matmul(table, xp.matrix_transpose(wk)), xp.matmul(wq, table[middle, :]))


def wavelengths(inv_freq: ArrayOf[T], /) -> T:
    r"""
    Return the tokens that each channel pair needs for a full rotation, :math:`2\pi/\theta_i`; infinite for frequency 0.

    Raises
    ------
    ValueError
        If `inv_freq` is not real floating, or not 1-D.

    Examples
    --------
    >>> import numpy as np
    >>> wavelengths(np.asarray([1.0, 0.01])).round(2).tolist()
    [6.28, 628.32]
    """
    inv_freq = _frequencies("wavelengths", inv_freq)
    xp = namespace(inv_freq)
    still = inv_freq == 0
    return xp.where(still, xp.asarray(float("inf"), dtype=inv_freq.dtype), 2 * pi / xp.where(still, inv_freq + 1, inv_freq))


def frequency_ratio(scaled: ArrayOf[T], inv_freq: ArrayOf[T], /) -> T:
    """
    Return how a context extension changes each frequency: the scaled frequency divided by the plain one.

    Plotted against the `wavelengths` of the plain frequencies, it shows the ramps of Linear, NTK-aware, YaRN, Llama 3 and
    LongRoPE.

    Raises
    ------
    ValueError
        If an argument is not real floating, or not 1-D.

    Examples
    --------
    >>> import numpy as np, posref
    >>> plain, _ = posref.rope_frequencies(8, base=10000.0)
    >>> halved, _ = posref.rope_frequencies(8, base=10000.0, scaling=posref.scaling.Linear(2.0))
    >>> frequency_ratio(halved, plain).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    return _frequencies("frequency_ratio", scaled, "scaled") / _frequencies("frequency_ratio", inv_freq)


def decay(inv_freq: ArrayOf[T], distances: ArrayOf[T], /) -> T:
    r"""
    Return the inner product of a rotated query and key, both all ones, at each distance, relative to distance 0.

    .. math:: g(n) = \frac{2}{d} \sum_{i=0}^{d/2-1} \cos(n \theta_i)

    where :math:`\theta_i` is the frequency of channel pair i, and d/2 the number of pairs.

    Parameters
    ----------
    inv_freq : array, real floating, shape ``(d/2,)``
        The frequencies, in radians per token.
    distances : array, real floating, shape ``(N,)``
        n, in tokens.

    Returns
    -------
    array, shape ``(N,)``

    Raises
    ------
    ValueError
        If an argument is not real floating, or not 1-D.

    Notes
    -----
    It does not tend to 0: beyond the longest wavelength it grows again. RoFormer, section 3.4.3, calls this long-term decay and
    bounds it (`decay_bound`).

    Examples
    --------
    >>> import numpy as np
    >>> decay(np.asarray([1.0, 0.0]), np.asarray([0.0, np.pi])).tolist()
    [1.0, 0.0]
    """
    angles = _angles("decay", inv_freq, distances)
    xp = namespace(angles)
    return xp.mean(xp.cos(angles), axis=-1)


def decay_bound(inv_freq: ArrayOf[T], distances: ArrayOf[T], /) -> T:
    r"""
    Return RoFormer's bound on the inner product of a rotated query and key at each distance, up to a factor set by the vectors.

    .. math:: B(n) = \frac{2}{d} \sum_{j=1}^{d/2} |S_j|, \qquad S_j = \sum_{i=0}^{j-1} e^{\mathrm i n \theta_i}

    where i in the exponent is the imaginary unit. Arguments, result and errors are as in `decay`. Source: RoFormer,
    arXiv:2104.09864, equation (37) and figure 2, which shows it up to distance 250.

    Examples
    --------
    >>> import numpy as np
    >>> decay_bound(np.asarray([1.0, 0.5]), np.asarray([0.0])).tolist()
    [1.5]
    """
    angles = _angles("decay_bound", inv_freq, distances)
    xp = namespace(angles)
    real = xp.cumulative_sum(xp.cos(angles), axis=-1)
    imaginary = xp.cumulative_sum(xp.sin(angles), axis=-1)
    return xp.mean(xp.sqrt(real * real + imaginary * imaginary), axis=-1)


def logit_terms(x: ArrayOf[T], table: ArrayOf[T], /, *, wq: ArrayOf[T], wk: ArrayOf[T]) -> T:
    r"""
    Return the four terms of the logits of tokens to which the rows of a table were added.

    .. math:: (W_Q (x_i + e_i)) \cdot (W_K (x_j + e_j)) = c_{ij} + d_{ij} + f_{ij} + g_{ij}

    The terms are content with content, content with position, position with content, and position with position. Only the
    last knows positions alone. Transformer-XL and DeBERTa begin with this sum.

    Parameters
    ----------
    x : array, real floating, shape ``(T, d)``
        The contents of the tokens.
    table : array, real floating, shape ``(T, d)``
        e, the row of each token's position.
    wq, wk : array, real floating, shape ``(m, d)``
        W_Q and W_K.

    Returns
    -------
    array, shape ``(4, T, T)``
        c, d, f and g, in the order of the formula, unscaled.

    Raises
    ------
    ValueError
        If `x` or `table` is not real floating or not 2-D, or their shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.eye(2)
    >>> logit_terms(one, 2 * one, wq=one, wk=one)[:, 0, 0].tolist()
    [1.0, 2.0, 2.0, 4.0]
    """
    x, table = _table("logit_terms", x), _table("logit_terms", table)
    if x.shape != table.shape:
        msg = f"logit_terms: x and table must have one shape; got {tuple(x.shape)} and {tuple(table.shape)}."
        raise ValueError(msg)
    xp = namespace(x, table)
    queries = [xp.matmul(part, xp.matrix_transpose(wq)) for part in (x, table)]
    keys = [xp.matmul(part, xp.matrix_transpose(wk)) for part in (x, table)]
    return xp.stack([xp.matmul(q, xp.matrix_transpose(k)) for q in queries for k in keys], axis=0)


def row_distance(inv_freq: ArrayOf[T], distances: ArrayOf[T], /) -> T:
    r"""
    Return how far apart two rows of sinusoids are, by the distance of their positions, relative to the largest possible.

    .. math:: D(n) = \sqrt{\tfrac{1}{2} (1 - g(n))}

    where g is `decay` of the same frequencies. D is 0 for equal rows, about 0.71 for unrelated ones, and 1 for opposite ones.
    Arguments, result and errors are as in `decay`.

    Examples
    --------
    >>> import numpy as np
    >>> row_distance(np.asarray([1.0]), np.asarray([0.0, np.pi])).tolist()
    [0.0, 1.0]
    """
    alike = decay(inv_freq, distances)
    xp = namespace(alike)
    return xp.sqrt(xp.where(alike < 1, 1 - alike, xp.zeros_like(alike)) / 2)


def resolution(inv_freq: ArrayOf[T], /) -> T:
    r"""
    Return the angle between the encodings of neighbours: how well nearby positions can be distinguished.

    .. math:: \alpha = \arccos\left( \frac{2}{d} \sum_{i=0}^{d/2-1} \cos\theta_i \right)

    where :math:`\theta_i` is the frequency of channel pair i, of d/2. Dividing all frequencies by s divides it by about s.
    NTK-aware scaling and YaRN keep the high frequencies, and so most of the angle.

    Parameters
    ----------
    inv_freq : array, real floating, shape ``(d/2,)``

    Returns
    -------
    array, shape ``()``
        In radians.

    Raises
    ------
    ValueError
        If `inv_freq` is not real floating, or not 1-D.

    Examples
    --------
    >>> import numpy as np
    >>> resolution(np.asarray([1.0, 1.0])).round(6).tolist()
    1.0
    """
    inv_freq = _frequencies("resolution", inv_freq)
    xp = namespace(inv_freq)
    return xp.acos(xp.mean(xp.cos(inv_freq)))


def beyond_training(scaled: ArrayOf[T], inv_freq: ArrayOf[T], /, *, trained: int, length: int) -> T:
    r"""
    Return for each pair whether a longer text rotates it by angles that training never reached.

    .. math:: L \, \theta'_i > L_0 \, \theta_i \quad \text{and} \quad L_0 \, \theta_i < 2\pi

    where :math:`\theta_i` and :math:`\theta'_i` are the frequencies of pair i in training and now, and L_0 and L the lengths. A
    pair that made a full rotation in training has seen all angles. Products that differ by 16 roundings or less count as equal.

    Parameters
    ----------
    scaled, inv_freq : array, real floating, shape ``(d/2,)``
        The frequencies now and in training.
    trained, length : int
        L_0 and L, in tokens, at least 1.

    Returns
    -------
    array, boolean, shape ``(d/2,)``

    Raises
    ------
    ValueError
        If an array is not real floating or not 1-D, or a length is less than 1.

    Examples
    --------
    >>> import numpy as np
    >>> plain = np.asarray([1.0, 0.001])
    >>> beyond_training(plain, plain, trained=1000, length=4000).tolist()
    [False, True]
    """
    scaled = _frequencies("beyond_training", scaled, "scaled")
    inv_freq = _frequencies("beyond_training", inv_freq)
    seen = check_integer("beyond_training", "trained", trained, 1) * inv_freq
    apart = 1 + 16 * float(namespace(inv_freq).finfo(inv_freq.dtype).eps)
    return (check_integer("beyond_training", "length", length, 1) * scaled > seen * apart) & (seen < 2 * pi)


def block_products(near: ArrayOf[T], seen: ArrayOf[T], /, *, block: int) -> T:
    r"""
    Return how many matrix products each block of queries and keys needs, where near and far pairs have scores of their own.

    .. math:: c_{AB} = \left[ \exists \, i \in A, j \in B : s_{ij} \wedge n_{ij} \right] +
        \left[ \exists \, i \in A, j \in B : s_{ij} \wedge \neg n_{ij} \right]

    where n is `near` and s is `seen`. So c is 0 for blocks that are masked, 2 for those with both kinds, and else 1. ReRoPE,
    Self-Extend and StreamingLLM compute two scores for a pair and take one. A kernel needs both for few blocks only.

    Parameters
    ----------
    near : array, boolean, shape ``(Q, K)``
        n, true where the first score is taken.
    seen : array, boolean, shape ``(Q, K)``
        s, true where the query attends to the key.
    block : int
        The number of queries and of keys in a block: a divisor of Q and of K.

    Returns
    -------
    array, int32, shape ``(Q / block, K / block)``

    Raises
    ------
    ValueError
        If an array is not boolean, they are not 2-D or of different shapes, or `block` does not divide Q and K.

    Examples
    --------
    >>> import numpy as np
    >>> apart = np.arange(6)[:, None] - np.arange(6)
    >>> block_products(apart < 2, apart >= 0, block=2).tolist()
    [[1, 0, 0], [2, 1, 0], [1, 2, 1]]
    """
    xp = library("block_products", near=near, seen=seen)
    for name, array in (("near", near), ("seen", seen)):
        if array.dtype != xp.bool:
            msg = f"block_products: {name} must be boolean; got {array.dtype}."
            raise ValueError(msg)
    if near.ndim != 2 or near.shape != seen.shape:
        shapes = f"{tuple(near.shape)} and {tuple(seen.shape)}"
        msg = f"block_products: near and seen must be 2-D and of one shape; got {shapes}."
        raise ValueError(msg)
    queries, keys = near.shape
    check_integer("block_products", "block", block, 1)
    if queries % block or keys % block:
        msg = f"block_products: block must divide the axes of near, {queries} and {keys}; got {block}."
        raise ValueError(msg)
    kinds = xp.stack([xp.logical_and(seen, near), xp.logical_and(seen, xp.logical_not(near))], axis=0)
    parts = xp.reshape(kinds, (2, queries // block, block, keys // block, block))
    return xp.sum(xp.astype(xp.any(xp.any(parts, axis=4), axis=2), xp.int32), axis=0, dtype=xp.int32)


def entropy(logits: ArrayOf[T], /) -> T:
    r"""
    Return the entropy of the softmax of each row of logits, in nats: 0 for one key, ln n if n keys have equal weights.

    .. math:: H = -\sum_j a_j \ln a_j, \qquad a = \mathrm{softmax}(z)

    where z is a row of logits. For random logits it grows with the logarithm of the number of keys. `posref.logn_scale`
    multiplies queries so that it grows less.

    Parameters
    ----------
    logits : array, real floating, shape ``(*R, K)``
        z, finite, at least one key.

    Returns
    -------
    array, shape ``(*R,)``

    Raises
    ------
    ValueError
        If `logits` is not real floating.

    Examples
    --------
    >>> import numpy as np
    >>> entropy(np.asarray([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 90.0]])).round(4).tolist()
    [1.3863, 0.0]
    """
    library("entropy", logits=logits)
    check_real("entropy", logits=logits)
    xp = namespace(logits)
    apart = logits - xp.max(logits, axis=-1, keepdims=True)
    weights = xp.exp(apart)
    total = xp.sum(weights, axis=-1)
    return xp.log(total) - xp.sum(weights * apart, axis=-1) / total


def rounded(x: ArrayOf[T], bits: int, /) -> T:
    r"""
    Return float64 values rounded to `bits` significant bits, to nearest: 24 for float32, 11 for float16, 8 for bfloat16.

    Exponents keep the range of float64. The method is Veltkamp's: :math:`h = cx - (cx - x)` with :math:`c = 2^{53-b}+1`.

    Raises
    ------
    ValueError
        If `x` is not float64, or `bits` is less than 2.

    Examples
    --------
    >>> import numpy as np
    >>> rounded(np.asarray([257.0, 0.1]), 8).tolist()
    [256.0, 0.10009765625]
    """
    check_integer("rounded", "bits", bits, 2)
    x = _wide_enough("rounded", x)
    scaled = x * float(2 ** (53 - bits) + 1)
    return scaled - (scaled - x)


def angle_error(inv_freq: ArrayOf[T], positions: ArrayOf[T], /, *, bits: int) -> T:
    r"""
    Return the error of sines and cosines computed with low-precision angles, for each position: the largest over all pairs.

    .. math:: E(p) = \max_i \left| e^{\mathrm i \hat a} - e^{\mathrm i p \theta_i} \right|, \qquad
        \hat a = r(r(p) \, r(\theta_i))

    where p is the position, :math:`\theta_i` the frequency of pair i, and r rounds to `bits` bits: 24 for float32, 8 for
    bfloat16. Position, frequency and angle are rounded; sine and cosine are not. The largest possible error is 2.

    Parameters
    ----------
    inv_freq : array, shape ``(d/2,)``, float64
        The frequencies, in radians per token.
    positions : array, shape ``(N,)``, float64
    bits : int
        Significant bits, at least 2.

    Returns
    -------
    array, shape ``(N,)``

    Raises
    ------
    ValueError
        If an array is not float64 or not 1-D, or `bits` is less than 2.

    Examples
    --------
    >>> import numpy as np
    >>> angle_error(np.asarray([1.0, 0.01]), np.asarray([1.0, 257.0]), bits=8).round(4).tolist()
    [0.0, 0.9589]
    """
    inv_freq = _wide_enough("angle_error", inv_freq, "inv_freq")
    positions = _wide_enough("angle_error", positions, "positions")
    true = _angles("angle_error", inv_freq, positions)
    held = rounded(rounded(positions, bits)[:, None] * rounded(inv_freq, bits), bits)
    xp = namespace(true)
    return xp.max(2 * xp.abs(xp.sin((held - true) / 2)), axis=-1)


def by_distance(bias: ArrayOf[T], /) -> T:
    """
    Return the bias of the last query by distance: the last row of ``(..., Q, K)``, from the last key to the first.

    Raises
    ------
    ValueError
        If `bias` has fewer than two axes.

    Examples
    --------
    >>> import numpy as np, posref
    >>> by_distance(posref.alibi(np.arange(3), np.arange(3), heads=8, form="causal"))[0].tolist()
    [-0.0, -0.5, -1.0]
    """
    if bias.ndim < 2:
        msg = f"by_distance: bias must have axes of queries and keys; got shape {tuple(bias.shape)}."
        raise ValueError(msg)
    return namespace(bias).flip(bias[..., -1, :], axis=-1)


def _wide_enough(function: str, x: Array, argument: str = "x") -> Array:
    """Return `x`. Raise if it is not float64."""
    xp = library(function, **{argument: x})
    if x.dtype != getattr(xp, "float64", None):
        msg = f"{function}: arrays must be float64 (it holds products of narrower numbers); got {x.dtype}."
        raise ValueError(msg)
    return x


def _table(function: str, table: Array) -> Array:
    """Return a table in float32 or wider."""
    check_real(function, table=table)
    if table.ndim != 2:
        msg = f"{function}: table must be 2-D, with a row for each position; got shape {tuple(table.shape)}."
        raise ValueError(msg)
    xp = namespace(table)
    return xp.astype(table, wide(table.dtype, xp))


def _frequencies(function: str, inv_freq: Array, argument: str = "inv_freq") -> Array:
    library(function, **{argument: inv_freq})
    check_real(function, inv_freq=inv_freq)
    if inv_freq.ndim != 1:
        msg = f"{function}: frequencies must have one axis; got shape {tuple(inv_freq.shape)}."
        raise ValueError(msg)
    return inv_freq


def _angles(function: str, inv_freq: Array, distances: Array) -> Array:
    """Return the angle of every distance and pair, shape ``(N, d/2)``."""
    check_real(function, distances=distances)
    if distances.ndim != 1:
        msg = f"{function}: distances must have one axis; got shape {tuple(distances.shape)}."
        raise ValueError(msg)
    return distances[:, None] * _frequencies(function, inv_freq)
