"""The rotation matrices of LieRE. Source: Ostmeier et al., arXiv:2406.10322."""

from posref.arrays import DType, cast, common_shape, namespace, result_dtype
from posref.checks import check_positions
from posref.matrices import matrix_dtype, skew_exponential, skew_symmetric
from posref.spec import Axes, encoding
from posref.types import ArrayOf, T


@encoding(
    family="rotary",
    source="arXiv:2406.10322",
    models=("LieRE",),
    invariants=("orthogonal",),
    arrays={
        "positions": Axes("A | A *R T | A *R T | A T | A T 1 | A B 1 T", "position"),
        "generators": Axes("A G n n | A G n n | A ~*R ~T G n n | A H 1 G n n | A H G n n | A 1 H 1 G n n", "wide"),
    },
    result="G n n | *R T G n n | *R T G n n | H T G n n | T H G n n | B H T G n n",
    rows="*R B H T",
    requires=("A >= 1", "G >= 1", "n >= 2"),
    noun="rotations",
    rounded=("generators",),
)
def liere_rotations(positions: ArrayOf[T], generators: ArrayOf[T], /, *, dtype: DType | None = None) -> T:
    r"""
    Return the rotation of every token: the exponential of its coordinates times learned skew-symmetric matrices.

    .. math:: R_p = \exp \sum_{a<A} p_a S_a, \qquad (S_a)_{ij} = g_{a,ij}, \quad (S_a)_{ji} = -g_{a,ij} \quad (i < j)

    in each block, with the matrix exponential, the token's coordinate :math:`p_a` along axis a, and zeros on the diagonal of S.

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(A, *P)``
        Coordinates along each of A axes, at least one. From 0 to 1 over an image of the training size in the authors' code,
        where the class token is at 0 on every axis.
    generators : array, shape ``(A, *F, G, n, n)``
        g, radians per unit of the axis, for each of G blocks of n channels. Only the strict upper triangle is used; what stands
        on and below the diagonal is ignored. They carry gradients. F broadcasts with P from the right: ``(A, H, 1, G, n, n)``
        for heads before tokens, ``(A, H, G, n, n)`` for tokens before heads with positions ``(A, T, 1)``, ``(A, G, n, n)``
        where heads share them.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*R, G, n, n)``
        R is the common shape of P and F. To rotate, multiply a column of n channels by it from the left: :math:`R_p x`.

    Raises
    ------
    ValueError
        If positions are half precision, generators do not have the axes of positions or are not square, or F and P do not
        broadcast.

    Notes
    -----
    Exponent and exponential are in float64 where the library has it, else in float32. Errors grow with the norm of the
    exponent, as those of an angle do; in float32 no digit is right at norms above 2^20. The sum is taken before the
    exponential: where generators do not commute, rotating by one axis after the other differs, and logits depend on more than
    differences of coordinates. With n = 2 it is RoPE-Mixed rotating in the other direction.

    The authors' code has one block of all 64 channels of a head by default, and one set of generators for all layers and heads,
    or one for each. Generators start from random numbers below :math:`2\pi`.

    Examples
    --------
    >>> import numpy as np
    >>> sixth = np.asarray([[[[0.0, np.pi / 3], [9.0, 9.0]]]])  # a sixth of a turn
    >>> liere_rotations(np.asarray([1]), sixth).round(4).tolist()
    [[[0.5, 0.866], [-0.866, 0.5]]]
    """
    name = "liere_rotations"
    check_positions(name, "positions", positions)
    p, g = tuple(positions.shape), tuple(generators.shape)
    if not p or len(g) < 4 or p[0] != g[0] or not p[0] or g[-1] != g[-2]:
        msg = f"{name}: generators must be (A, ..., G, n, n) for positions (A, ...), with A at least 1; got {g} and {p}."
        raise ValueError(msg)
    rows = common_shape(p[1:], g[1:-3])
    if any(n not in (1, m) for shape in (p[1:], g[1:-3]) for n, m in zip(shape[::-1], rows[::-1], strict=False)):
        msg = f"{name}: axes of generators between the first and last three must broadcast with positions; got {g} and {p}."
        raise ValueError(msg)
    xp = namespace(positions, generators)
    dtype = result_dtype(positions, dtype)
    work = matrix_dtype(positions)
    spread = xp.reshape(cast(positions, work), (p[0], *(1,) * (len(rows) - len(p) + 1), *p[1:], 1, 1, 1))
    aligned = xp.reshape(skew_symmetric(cast(generators, work)), (g[0], *(1,) * (len(rows) - len(g) + 4), *g[1:]))
    return cast(skew_exponential(xp.sum(spread * aligned, axis=0)), dtype)
