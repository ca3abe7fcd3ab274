"""LieRE: rotation by exponentials of learned generators. Source: Ostmeier et al., arXiv:2406.10322."""

from posref.core.arrays import cast, library, wide
from posref.core.checks import check_coordinates, check_numbers, check_positions, check_real
from posref.core.products import matmul
from posref.rotary.liere_rotations import liere_rotations
from posref.spec import Axes, Flag, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Lie rotational encoding (LieRE)",
    idea=(
        "LieRE rotates many channels together, where RoPE rotates them two by two. How they rotate is learned, for every axis "
        "of an image or video. Queries and keys are multiplied by the rotation of their place, and so their products depend "
        "on places."
    ),
    family="rotary",
    source="arXiv:2406.10322",
    models=("LieRE",),
    domains={"inverse": Flag()},
    invariants=("norm kept", "tail unchanged", "decode"),
    arrays={
        "x": Axes("G*n+E | *R T G*n+E | *R T G*n+E | *R T G*n+E | *R T G*n+E"),  # E channels after the rotated ones
        "positions": Axes("A | A T | A T | A *R T | A ~*R ~T", "position"),
        "generators": Axes("A G n n | A G n n | A ~*R ~T G n n | A G n n | A ~*R ~T G n n", "wide", usual=(-0.5, 0.5)),
    },
    result="=x",
    rows="*R T",
    requires=("A >= 1", "G >= 1", "n >= 2"),
    read={"LieRE": "StanfordMIMI/LieRE@b27b41b, models/rope_vit.py:224-241, 281, 330-373"},
)
def liere(x: ArrayOf[T], positions: ArrayOf[T], generators: ArrayOf[T], /, *, inverse: bool = False) -> T:
    r"""
    Return `x` with every block of n channels rotated by the exponential of coordinates times learned generators.

    .. math:: y_k = R_{p,k} \, x_k, \qquad R_{p,k} = \exp \sum_{a<A} p_a S_{a,k}, \qquad
        (S_{a,k})_{ij} = g_{a,k,ij}, \quad (S_{a,k})_{ji} = -g_{a,k,ij} \quad (i < j)

    Here :math:`x_k` is block k < G, the column of channels k n to k n + n - 1, :math:`p_a` is the token's coordinate along axis
    a, exp is the matrix exponential and g are the generators. :math:`S_{a,k}` is skew-symmetric, with zeros on its diagonal.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(A, *P)``
        p, coordinates along each of the A axes. For x of (B, H, T, D) pass (A, T) or (A, B, 1, T). A token at 0 on every axis,
        such as the class token, is not rotated.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
        Beyond angles of 2^48 results are no rotations: no digit of float64 is left.
    generators : array, shape ``(A, G, n, n)`` or ``(A, *F, G, n, n)``
        g, learned, in radians per unit of the axis. Only strict upper triangles are used: see `liere_rotations`. F has one axis
        for each axis of R, of the same size or 1. If each head has its own generators, pass (A, 1, H, 1, G, n, n) with x of (B,
        H, T, D), and (A, 1, 1, H, G, n, n) with x of (B, T, H, D).
    inverse : bool
        Multiply by the transposes of R, which are the inverses. Use it if your code multiplies rows of channels by R from the
        right.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`. Channels from G n on are unchanged, as in the authors' code.

    Raises
    ------
    ValueError
        If generators do not fit x or the positions, or positions do not broadcast or are half precision.

    Examples
    --------
    >>> import numpy as np
    >>> x, generators = np.asarray([[1.0, 0.0, 5.0]]), np.asarray([[[[0.0, np.pi / 3], [0.0, 0.0]]]])
    >>> liere(x, np.asarray([[1]]), generators).round(4).tolist()
    [[0.5, -0.866, 5.0]]
    """
    name = "liere"
    xp = library(name, x=x, positions=positions, generators=generators)
    check_real(name, x=x)
    check_positions(name, "positions", positions)
    check_numbers(name, generators=generators)
    rows, g, width = tuple(x.shape[:-1]), tuple(generators.shape), x.shape[-1]
    fits = len(g) == 4 or (len(g) == len(rows) + 4 and all(n in (1, m) for n, m in zip(g[1:-3], rows, strict=True)))
    if not fits or g[-3] * g[-1] > width:
        msg = (
            f"{name}: generators must be (A, G, n, n), or (A, *F, G, n, n) with F of {len(rows)} axes that broadcast to {rows} "
            f"(the leading axes of x), and G n at most {width}; got {g}."
        )
        raise ValueError(msg)
    check_coordinates(name, tuple(positions.shape), g[0], rows)
    work = wide(x.dtype, xp)
    rotations = liere_rotations(positions, generators, dtype=work)
    if inverse:
        rotations = xp.matrix_transpose(rotations)
    blocks, n = g[-3], g[-1]
    columns = xp.reshape(x[..., : blocks * n], (*rows, blocks, n, 1))
    rotated = xp.reshape(matmul(rotations, cast(columns, work)), (*rows, blocks * n))
    rotated = cast(rotated, x.dtype)
    return rotated if blocks * n == width else xp.concat([rotated, x[..., blocks * n :]], axis=-1)
