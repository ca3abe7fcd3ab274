"""
Rotations of many lanes at once: skew-symmetric matrices, their exponential and their Cayley transform.

The array API has no matrix exponential. Where the library has none of its own (PyTorch has), it is formed by scaling and
squaring (Higham, SIAM J. Matrix Anal. Appl. 26, 2005), with as many steps for every matrix, masked where one needs fewer, so
that nothing branches on values.
"""

from posref.arrays import Array, DType, beside, has_float64, namespace, placement

DEGREE, SQUARINGS = 18, 48  # 1/19! is below 2^-53; norms up to 2^48: any int32 position, at generators of norm 2^17


def matrix_dtype(x: Array) -> DType:
    """Return the dtype in which functions of learned matrices are formed: float64 where the library has it, else float32."""
    xp = namespace(x)
    return getattr(xp, "matrices", xp.float64) if has_float64(x) else xp.float32


def skew_symmetric(x: Array) -> Array:
    """Return the skew-symmetric matrices whose strict upper triangles are those of `x`; its other entries are not used."""
    xp, n = namespace(x), x.shape[-1]
    above = xp.asarray([[i < j for j in range(n)] for i in range(n)], **placement(x, xp))
    upper = xp.where(above, x, beside([[0.0]], x, x.dtype))
    return upper - xp.matrix_transpose(upper)


def skew_exponential(x: Array) -> Array:
    """
    Return the exponentials of skew-symmetric matrices of shape ``(..., n, n)``, in the dtype of `x`.

    A matrix is halved until its Frobenius norm is at most 1, its exponential is the Taylor polynomial of degree 18, and that
    is squared as often. Errors double with every squaring, as those of an angle grow with it.
    """
    xp = namespace(x)
    if getattr(xp, "computes_constants", False):
        return xp.skew_exponential(x)
    if hasattr(xp, "matrix_exp"):
        return xp.matrix_exp(x)
    square = xp.sum(x * x, axis=(-2, -1), keepdims=True)
    large = [square > 4.0**step for step in range(SQUARINGS)]
    half = xp.ones_like(square)
    for more in large:
        half = xp.where(more, half / 2, half)
    x, one = x * half, identity(x)
    power = one
    for k in range(DEGREE, 0, -1):
        power = one + xp.matmul(x, power) / k
    for more in large:
        power = xp.where(more, xp.matmul(power, power), power)
    return power


def cayley_transform(x: Array) -> Array:
    """
    Return ``(I - S)(I + S)^-1`` of skew-symmetric matrices S of shape ``(..., n, n)``, in the dtype of `x`.

    The factors commute, so that it solves (I + S) P = I - S: by Gauss-Jordan elimination. No pivot is sought, since every one
    is at least 1 (Golub and Van Loan, Linear Algebra Appl. 28, 1979: the symmetric part of I + S is I, and stays above it).
    """
    xp, n, one = namespace(x), x.shape[-1], identity(x)
    rest = xp.concat([one + x, one - x], axis=-1)
    for _ in range(n):  # the row and the column that are done go last, so that all steps are alike
        row = rest[..., :1, :] / rest[..., :1, :1]
        rest = xp.concat([rest[..., 1:, :] - rest[..., 1:, :1] * row, row], axis=-2)
        rest = xp.concat([rest[..., 1:], rest[..., :1]], axis=-1)
    return rest[..., :n]


def identity(x: Array) -> Array:
    """Return the identity beside matrices `x`, of its shape, so that nothing broadcasts."""
    xp, n = namespace(x), x.shape[-1]
    return xp.broadcast_to(beside([[float(i == j) for j in range(n)] for i in range(n)], x, x.dtype), x.shape)
