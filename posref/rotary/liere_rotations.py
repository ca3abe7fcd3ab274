"""The rotation matrices of LieRE. Source: Ostmeier et al., arXiv:2406.10322."""

from posref.core.arrays import DType, cast, common_shape, library, result_dtype
from posref.core.checks import check_numbers, check_positions
from posref.core.matrices import matrix_dtype, skew_exponential, skew_symmetric
from posref.spec import Axes, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Rotation matrices of LieRE",
    idea=(
        "For a patch in row 3 and column 7, LieRE adds 3 times one learned matrix and 7 times another. Its matrix exponential "
        "is a rotation, since the learned matrices are skew-symmetric: mirrored entries have opposite signs. This gives each "
        "rotation."
    ),
    family="rotary",
    source="arXiv:2406.10322",
    models=("LieRE",),
    invariants=("orthogonal",),
    arrays={
        "positions": Axes("A | A *R T | A *R T | A T | A T 1 | A B 1 T", "position"),
        "generators": Axes(
            "A G n n | A G n n | A ~*R ~T G n n | A H 1 G n n | A H G n n | A 1 H 1 G n n", "wide", usual=(-0.5, 0.5)
        ),
    },
    result="G n n | *R T G n n | *R T G n n | H T G n n | T H G n n | B H T G n n",
    rows="*R B H T",
    requires=("A >= 1", "G >= 1", "n >= 2"),
    noun="rotations",
    rounded=("generators",),
)
def liere_rotations(positions: ArrayOf[T], generators: ArrayOf[T], /, *, dtype: DType | None = None) -> T:
    r"""
    Return the rotation matrices of every token: the exponential of its coordinates times learned skew-symmetric matrices.

    .. math:: R_p = \exp \sum_{a<A} p_a S_a, \qquad (S_a)_{ij} = g_{a,ij}, \quad (S_a)_{ji} = -g_{a,ij} \quad (i < j)

    This is the formula for one block of channels. Here exp is the matrix exponential, :math:`p_a` is the token's coordinate
    along axis a, and S has zeros on its diagonal.

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(A, *P)``
        p, coordinates along each of A axes, at least one. In the authors' code they go from 0 to 1 over an image of the
        training size, and the class token is at 0 on every axis.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
        Beyond angles of 2^48 results are no rotations: no digit of float64 is left.
    generators : array, shape ``(A, *F, G, n, n)``
        g, in radians per unit of the axis, for each of G blocks of n channels. Only the strict upper triangle is used; entries
        on and below the diagonal are ignored. Gradients flow back to it. F broadcasts with P from the right. If heads share
        generators, pass ``(A, G, n, n)``. If each head has its own, pass ``(A, H, 1, G, n, n)`` for heads before tokens, and
        ``(A, H, G, n, n)`` with positions ``(A, T, 1)`` for tokens before heads.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*R, G, n, n)``
        R is the common shape of P and F. To rotate a column x of n channels, compute :math:`R_p x`.

    Raises
    ------
    ValueError
        If positions are half precision or have no axes, their first axis is empty or differs in size from the first axis of
        generators, generators are not square, or F and P do not broadcast.

    Notes
    -----
    The exponent and the exponential are computed in float64 if the library has it, else in float32. Errors grow with the norm
    of the exponent, like the error of an angle. In float32 they reach about 0.03 at norm 2^20 and 0.1 at norm 2^22.

    The sum is taken before the exponential. If generators do not commute, rotating along one axis after the other gives another
    result, and logits depend on more than differences of coordinates. With n = 2 this is RoPE-Mixed rotating in the other
    direction.

    By default, the authors' code has one block with all 64 channels of a head. All layers and heads share one set of
    generators, or each has its own. Generators start from random numbers below :math:`2\pi`.

    Examples
    --------
    >>> import numpy as np
    >>> sixth = np.asarray([[[[0.0, np.pi / 3], [9.0, 9.0]]]])  # a sixth of a turn
    >>> liere_rotations(np.asarray([1]), sixth).round(4).tolist()
    [[[0.5, 0.866], [-0.866, 0.5]]]
    """
    name = "liere_rotations"
    check_positions(name, "positions", positions)
    check_numbers(name, generators=generators)
    p, g = tuple(positions.shape), tuple(generators.shape)
    if not p or len(g) < 4 or p[0] != g[0] or not p[0] or g[-1] != g[-2]:
        msg = f"{name}: generators must be (A, ..., G, n, n) for positions (A, ...), with A at least 1; got {g} and {p}."
        raise ValueError(msg)
    rows = common_shape(p[1:], g[1:-3])
    if any(n not in (1, m) for shape in (p[1:], g[1:-3]) for n, m in zip(shape[::-1], rows[::-1], strict=False)):
        msg = f"{name}: axes of generators between the first and last three must broadcast with positions; got {g} and {p}."
        raise ValueError(msg)
    xp = library(name, positions=positions, generators=generators)
    dtype = result_dtype(name, positions, dtype)
    work = matrix_dtype(positions)
    spread = xp.reshape(cast(positions, work), (p[0], *(1,) * (len(rows) - len(p) + 1), *p[1:], 1, 1, 1))
    aligned = xp.reshape(skew_symmetric(cast(generators, work)), (g[0], *(1,) * (len(rows) - len(g) + 4), *g[1:]))
    return cast(skew_exponential(xp.sum(spread * aligned, axis=0)), dtype)
