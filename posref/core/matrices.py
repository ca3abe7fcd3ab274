"""
Rotations of many channels at once: the exponential and the Cayley transform of skew-symmetric matrices.

The array API has no matrix exponential. For PyTorch this module calls PyTorch's. For other libraries it uses scaling and
squaring (Higham, SIAM J. Matrix Anal. Appl. 26, 2005). Every matrix goes through the same steps, and a mask discards the
steps that it does not need. So nothing branches on values.
"""

from posref.core.arrays import Array, DType, beside, has_float64, namespace, number_system, placement, spread
from posref.core.products import matmul

DEGREE, SQUARINGS = 18, 48  # 1/19! is below 2^-53; norms up to 2^48: any int32 position, with generators of norm 2^17


def matrix_dtype(x: Array) -> DType:
    """Return the dtype for functions of learned matrices: float64 if the library has it, else float32."""
    xp = namespace(x)
    return getattr(xp, "matrices", xp.float64) if has_float64(x) else xp.float32


def skew_symmetric(x: Array) -> Array:
    """Return S with :math:`S_{ij} = x_{ij}`, :math:`S_{ji} = -x_{ij}` for i < j and 0 on the diagonal."""
    xp, n = namespace(x), x.shape[-1]
    above = spread(xp.asarray([[i < j for j in range(n)] for i in range(n)], **placement(x, xp)), x)
    upper = xp.where(above, x, beside([[0.0]], x, x.dtype))
    return upper - xp.matrix_transpose(upper)


def skew_exponential(x: Array) -> Array:
    r"""
    Return the exponentials of skew-symmetric matrices of shape ``(..., n, n)``, in the dtype of `x`.

    .. math:: \exp X \approx \Bigl(\sum_{k \le 18} \frac{(2^{-m} X)^k}{k!}\Bigr)^{2^m}

    Here m is the number of halvings after which the Frobenius norm of X is at most 1. If the library has its own exponential,
    this calls it. Errors double with every squaring, just as the error of an angle grows with the angle.
    """
    xp = namespace(x)
    if number_system(xp) is not None:
        return xp.skew_exponential(x)
    if hasattr(xp, "matrix_exp"):
        return xp.matrix_exp(x)
    square = xp.sum(x * x, axis=(-2, -1), keepdims=True)
    large = [square > 4.0**step for step in range(SQUARINGS)]
    half = xp.ones_like(square)
    for more in large:
        half = xp.where(more, half / 2, half)
    x, unit = x * half, identity(x)
    power = unit
    for k in range(DEGREE, 0, -1):
        power = unit + matmul(x, power) / k
    for more in large:
        power = xp.where(more, matmul(power, power), power)
    return power


def cayley_transform(x: Array) -> Array:
    """
    Return ``(I - S)(I + S)^-1`` of skew-symmetric matrices S of shape ``(..., n, n)``, in the dtype of `x`.

    The factors commute, so this solves (I + S) U = I - S by Gauss-Jordan elimination. It needs no pivoting, because every pivot
    is at least 1: the symmetric part of I + S is I, and elimination never makes it smaller (Golub and Van Loan, Linear Algebra
    Appl. 28, 1979).
    """
    xp, n, unit = namespace(x), x.shape[-1], identity(x)
    rest = xp.concat([unit + x, unit - x], axis=-1)
    for _ in range(n):  # finished rows and columns move to the end, so every step is the same
        row = rest[..., :1, :] / rest[..., :1, :1]
        rest = xp.concat([rest[..., 1:, :] - rest[..., 1:, :1] * row, row], axis=-2)
        rest = xp.concat([rest[..., 1:], rest[..., :1]], axis=-1)
    if number_system(xp) is not None:  # adds error bounds that also hold for other solvers
        return xp.cayley(x, rest[..., :n])
    return rest[..., :n]


def identity(x: Array) -> Array:
    """Return identity matrices, in the shape and dtype of `x`."""
    xp, n = namespace(x), x.shape[-1]
    return xp.broadcast_to(beside([[float(i == j) for j in range(n)] for i in range(n)], x, x.dtype), x.shape)
