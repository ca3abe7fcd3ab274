"""Circulant-STRING, rotation by exponentials of circulant matrices. Source: Schenck et al., arXiv:2502.02562, section 3.2."""

from typing import Any

from posref.arrays import Array, beside, cast, constants, namespace, wide
from posref.checks import check_positions, check_rows
from posref.matrices import matrix_dtype
from posref.rotary.apply_rope import apply_rope
from posref.rotary.mixed_table import mixed_table
from posref.spec import Axes, Flag, encoding


@encoding(
    family="rotary",
    source="arXiv:2502.02562, equation (11) and theorem 3.5",
    models=("Circulant-STRING",),
    domains={"inverse": Flag()},
    invariants=("norm kept", "relative", "tail unchanged", "decode"),
    arrays={
        "x": Axes("G*n+E | *R T G*n+E | *R T G*n+E | *R T G*n+E | *R T G*n+E"),  # E lanes of the tail
        "positions": Axes("A | A T | A T | A *R T | A ~*R ~T", "position"),
        "coefficients": Axes("A G n | A G n | A ~*R ~T G n | A G n | A ~*R ~T G n"),
    },
    requires=("A >= 1", "G >= 1", "n >= 3"),
)
def circulant_string(x: Array, positions: Array, coefficients: Array, /, *, inverse: bool = False) -> Array:
    r"""
    Return `x` with every block of n lanes multiplied by the exponential of its coordinates times learned circulant matrices.

    .. math:: y = \exp\Bigl(\sum_a p_a (C_a - C_a^T)\Bigr) x, \qquad (C_a)_{ij} = c_{a,(i-j) \bmod n}

    Circulant matrices have the discrete Fourier basis in common, so that pair k of it turns by

    .. math:: \alpha_k = \sum_a p_a \, \theta_{a,k}, \qquad \theta_{a,k} = 2 \sum_m c_{a,m} \sin(2 \pi k m / n),
        \qquad 0 < k < n/2

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(A, *P)``
        Coordinates along each axis. P broadcasts from the right against R and never enlarges it.
    coefficients : array, shape ``(A, G, n)`` or ``(A, *F, G, n)``
        c, the first column of each axis's C, for each of G blocks of n lanes, n at least 3. F has as many axes as R, of size 1
        where coefficients do not change: (A, 1, H, 1, G, n) for an x of (B, H, T, D). The paper has one block.
    inverse : bool
        The transpose, which is the inverse: that of coefficients which are a first row.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`; lanes from G n on as they came.

    Raises
    ------
    ValueError
        If coefficients do not fit x or the positions, or positions do not broadcast or are half precision.

    Notes
    -----
    Coefficients 0, and n/2 of an even n, have no influence, nor has what c_m and c_(n-m) have in common: n lanes have
    (n - 1)//2 frequencies. By the fast Fourier transform it is O(n log n); here it is two products with the real Fourier basis.

    Examples
    --------
    >>> import numpy as np
    >>> third = 2 * np.pi / 3**1.5  # a third of a turn: lanes move on by one
    >>> circulant_string(np.asarray([[1.0, 2.0, 4.0]]), np.asarray([[1]]), np.asarray([[[0.0, third, 0.0]]])).round(4).tolist()
    [[4.0, 1.0, 2.0]]
    """
    name = "circulant_string"
    xp = namespace(x, positions, coefficients)
    check_positions(name, "positions", positions)
    rows, c, lanes = tuple(x.shape[:-1]), tuple(coefficients.shape), x.shape[-1]
    fits = len(c) == 3 or (len(c) == len(rows) + 3 and all(m in (1, r) for m, r in zip(c[1:-2], rows, strict=True)))
    if not fits or c[-1] < 3 or c[-2] * c[-1] > lanes or positions.ndim < 1:
        msg = (
            f"{name}: coefficients must be (A, G, n), or (A, *F, G, n) with F of {len(rows)} axes that broadcast to {rows} "
            f"(the leading axes of x), n at least 3 and G n at most {lanes}; got {c}."
        )
        raise ValueError(msg)
    check_rows(name, "positions", tuple(positions.shape[1:]), rows)
    work, (blocks, n) = wide(x.dtype, xp), c[-2:]
    learned = matrix_dtype(coefficients)
    basis, sines = _fourier(n, constants(xp))
    frequencies = 2 * xp.matmul(cast(coefficients, learned), beside(sines, coefficients, learned))
    basis = beside(basis, x, work)
    full = (positions.shape[0], *(1,) * (len(rows) + 1 - positions.ndim), *positions.shape[1:], 1)  # beside blocks
    cos, sin = mixed_table(xp.reshape(positions, full), frequencies, dtype=work)
    in_blocks = cast(xp.reshape(x[..., : blocks * n], (*rows, blocks, n)), work)
    turned = apply_rope(xp.matmul(in_blocks, basis), cos, sin, layout="interleaved", inverse=inverse)
    turned = cast(xp.reshape(xp.matmul(turned, xp.matrix_transpose(basis)), (*rows, blocks * n)), x.dtype)
    return turned if blocks * n == lanes else xp.concat([turned, x[..., blocks * n :]], axis=-1)


def _fourier(n: int, c: Any) -> tuple[Array, Array]:
    """
    Return the real Fourier basis as columns, and the sines of every frequency.

    Columns are cosine and sine of each frequency below n/2, then those that do not turn: the constant, and the alternating
    one of an even n.
    """
    turns = c.asarray([[k * j % n for k in range(1, (n + 1) // 2)] for j in range(n)], dtype=c.float64) / n
    angles = turns * (2 * c.pi)
    cosines, sines = c.cos(angles), c.sin(angles)
    exact_sines = getattr(c, "constant_sin", c.sin)(angles)  # of the frequencies, which are as accurate as angles
    pairs = c.reshape(c.stack([cosines, sines], axis=-1), (n, -1)) * c.sqrt(c.asarray(2.0, dtype=c.float64) / n)
    still = [[1.0, (-1.0) ** j] if n % 2 == 0 else [1.0] for j in range(n)]
    rest = c.asarray(still, dtype=c.float64) / c.sqrt(c.asarray(float(n), dtype=c.float64))
    return c.concat([pairs, rest], axis=-1), exact_sines
