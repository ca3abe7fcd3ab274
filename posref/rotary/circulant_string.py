"""Circulant-STRING: rotation by exponentials of circulant matrices. Source: Schenck et al., arXiv:2502.02562, section 3.2."""

from typing import Any

from posref.core.arrays import Array, beside, cast, constants, library, wide
from posref.core.checks import check_coordinates, check_flag, check_numbers, check_positions, check_real
from posref.core.matrices import matrix_dtype
from posref.core.products import matmul
from posref.rotary.apply_rope import apply_rope
from posref.rotary.mixed_table import mixed_table
from posref.spec import Axes, Flag, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Circulant-STRING",
    idea=(
        "The rotation is learned as circulant matrices: each row is the row above it, moved by one. Such matrices are simple "
        "for the Fourier transform, so rotating many channels together stays cheap. Products depend only on differences of "
        "coordinates."
    ),
    family="rotary",
    source="arXiv:2502.02562, equation (11) and theorem 3.5",
    models=("Circulant-STRING",),
    domains={"inverse": Flag()},
    invariants=("norm kept", "relative", "tail unchanged", "decode"),
    arrays={
        "x": Axes("G*n+E | *R T G*n+E | *R T G*n+E | *R T G*n+E | *R T G*n+E"),  # E channels after the rotated ones
        "positions": Axes("A | A T | A T | A *R T | A ~*R ~T", "position"),
        "coefficients": Axes("A G n | A G n | A ~*R ~T G n | A G n | A ~*R ~T G n", "wide", usual=(-0.5, 0.5)),
    },
    result="=x",
    rows="*R T",
    requires=("A >= 1", "G >= 1", "n >= 3"),
    closed=True,
    rounded=("coefficients",),
    read={"Circulant-STRING": "arXiv:2502.02562, equation (11)"},
)
def circulant_string(x: ArrayOf[T], positions: ArrayOf[T], coefficients: ArrayOf[T], /, *, inverse: bool = False) -> T:
    r"""
    Return `x` with every block of n channels rotated by the exponential of coordinates times learned circulant matrices.

    .. math:: y = \exp\Bigl(\sum_{a<A} p_a (C_a - C_a^T)\Bigr) x, \qquad (C_a)_{jm} = c_{a,(j-m) \bmod n}

    This is the formula for one block x of n channels. Here exp is the matrix exponential, and :math:`p_a` is the token's
    coordinate along axis a. All circulant matrices have the same eigenvectors, the discrete Fourier basis. So y is x with each
    pair

    .. math:: u_k = \sum_j x_j \cos(2 \pi k j / n), \qquad v_k = \sum_j x_j \sin(2 \pi k j / n), \qquad 0 < k < n/2

    rotated to :math:`u_k \cos\alpha_k - v_k \sin\alpha_k` and :math:`v_k \cos\alpha_k + u_k \sin\alpha_k`, where

    .. math:: \alpha_k = \sum_{a<A} p_a \, \theta_{a,k}, \qquad \theta_{a,k} = 2 \sum_m c_{a,m} \sin(2 \pi k m / n)

    The mean of x and, for even n, its alternating sum do not change.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(A, *P)``
        p, coordinates along each of the A axes. For x of (B, H, T, D) pass (A, T) or (A, B, 1, T).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    coefficients : array, shape ``(A, G, n)`` or ``(A, *F, G, n)``
        c, learned: the first column of C for each axis and each of G blocks of n channels, in radians per unit of the axis. n
        is at least 3. Block g is channels gn to gn + n - 1. F has one axis for each axis of R, of the same size or 1. If each
        head has its own coefficients, pass (A, 1, H, 1, G, n) with x of (B, H, T, D). The paper has one block.
    inverse : bool
        Multiply by the transpose, which is the inverse. Use it if your coefficients are the first row of C.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`. Channels from G n on are unchanged.

    Raises
    ------
    ValueError
        If coefficients do not fit x or the positions, or positions do not broadcast or are half precision.

    Notes
    -----
    Only the differences c_m - c_(n-m) matter. So coefficient 0 and, for even n, coefficient n/2 have no effect, and n channels
    have (n - 1)//2 frequencies. The fast Fourier transform would take O(n log n) steps; this code multiplies by the real
    Fourier basis twice.

    Examples
    --------
    >>> import numpy as np
    >>> third = 2 * np.pi / 3**1.5  # a third of a turn moves every value one channel on
    >>> circulant_string(np.asarray([[1.0, 2.0, 4.0]]), np.asarray([[1]]), np.asarray([[[0.0, third, 0.0]]])).round(4).tolist()
    [[4.0, 1.0, 2.0]]
    """
    name = "circulant_string"
    xp = library(name, x=x, positions=positions, coefficients=coefficients)
    check_real(name, x=x)
    check_numbers(name, coefficients=coefficients)
    check_positions(name, "positions", positions)
    rows, c, width = tuple(x.shape[:-1]), tuple(coefficients.shape), x.shape[-1]
    fits = len(c) == 3 or (len(c) == len(rows) + 3 and all(m in (1, r) for m, r in zip(c[1:-2], rows, strict=True)))
    if not fits or c[-1] < 3 or c[-2] * c[-1] > width:
        msg = (
            f"{name}: coefficients must be (A, G, n), or (A, *F, G, n) with F of {len(rows)} axes that broadcast to {rows} "
            f"(the leading axes of x), n at least 3 and G n at most {width}; got {c}."
        )
        raise ValueError(msg)
    check_coordinates(name, tuple(positions.shape), c[0], rows)
    inverse = check_flag(name, "inverse", inverse)
    work, (blocks, n) = wide(x.dtype, xp), c[-2:]
    learned = matrix_dtype(coefficients)
    basis, sines = _fourier(n, constants(xp))
    frequencies = 2 * matmul(cast(coefficients, learned), beside(sines, coefficients, learned))
    basis = beside(basis, x, work)
    full = (positions.shape[0], *(1,) * (len(rows) + 1 - positions.ndim), *positions.shape[1:], 1)  # 1: all blocks
    cos, sin = mixed_table(xp.reshape(positions, full), frequencies, dtype=work)
    in_blocks = cast(xp.reshape(x[..., : blocks * n], (*rows, blocks, n)), work)
    rotated = apply_rope(matmul(in_blocks, basis), cos, sin, layout="interleaved", inverse=inverse)
    rotated = cast(xp.reshape(matmul(rotated, xp.matrix_transpose(basis)), (*rows, blocks * n)), x.dtype)
    return rotated if blocks * n == width else xp.concat([rotated, x[..., blocks * n :]], axis=-1)


def _fourier(n: int, c: Any) -> tuple[Array, Array]:
    """
    Return the real Fourier basis as columns, and the sines for every frequency.

    The columns are the cosine and sine of each frequency k, 0 < k < n/2, then those that do not rotate: the constant column
    and, for even n, the alternating one.
    """
    turns = c.asarray([[k * j % n for k in range(1, (n + 1) // 2)] for j in range(n)], dtype=c.float64) / n
    angles = turns * (2 * c.pi)
    cosines, sines = c.cos(angles), c.sin(angles)
    exact_sines = getattr(c, "constant_sin", c.sin)(angles)  # the frequencies must be as accurate as angles
    pairs = c.reshape(c.stack([cosines, sines], axis=-1), (n, -1)) * c.sqrt(c.asarray(2.0, dtype=c.float64) / n)
    still = [[1.0, (-1.0) ** j] if n % 2 == 0 else [1.0] for j in range(n)]
    rest = c.asarray(still, dtype=c.float64) / c.sqrt(c.asarray(float(n), dtype=c.float64))
    return c.concat([pairs, rest], axis=-1), exact_sines
