"""LieRE, rotation by exponentials of learned generators. Source: Ostmeier et al., arXiv:2406.10322."""

from posref.arrays import Array, cast, namespace, wide
from posref.checks import check_positions, check_rows
from posref.rotary.liere_rotations import liere_rotations
from posref.spec import Axes, Flag, encoding


@encoding(
    family="rotary",
    source="arXiv:2406.10322",
    models=("LieRE",),
    domains={"inverse": Flag()},
    invariants=("norm kept", "tail unchanged", "decode"),
    stages=("liere_rotations",),
    arrays={
        "x": Axes("G*n+E | *R T G*n+E | *R T G*n+E | *R T G*n+E | *R T G*n+E"),  # E lanes of the tail
        "positions": Axes("A | A T | A T | A *R T | A ~*R ~T", "position"),
        "generators": Axes("A G n n | A G n n | A ~*R ~T G n n | A G n n | A ~*R ~T G n n"),
    },
    requires=("A >= 1", "G >= 1", "n >= 2"),
)
def liere(x: Array, positions: Array, generators: Array, /, *, inverse: bool = False) -> Array:
    r"""
    Return `x` with every block of n lanes rotated by the exponential of its coordinates times learned generators.

    .. math:: y_b = R_{p,b} \, x_b, \qquad R_{p,b} = \exp \sum_a p_a A_{a,b}

    with skew-symmetric :math:`A_{a,b}`, of which the strict upper triangle is given.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(A, *P)``
        Coordinates along each axis. P broadcasts from the right against R and never enlarges it. A token at 0 on every axis
        is not rotated: so the class token.
    generators : array, shape ``(A, G, n, n)`` or ``(A, *F, G, n, n)``
        See `liere_rotations`. F has as many axes as R, of size 1 where generators do not change: (A, 1, H, 1, G, n, n) for an
        x of (B, H, T, D), (A, 1, 1, H, G, n, n) for one of (B, T, H, D). Block b is lanes b n to b n + n - 1; G n lanes rotate.
    inverse : bool
        By the transposes, which are the inverses. Code that multiplies a row of lanes by R from the right does this.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`; lanes from G n on as they came, as in the authors' code.

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
    xp = namespace(x, positions, generators)
    check_positions(name, "positions", positions)
    rows, g, lanes = tuple(x.shape[:-1]), tuple(generators.shape), x.shape[-1]
    fits = len(g) == 4 or (len(g) == len(rows) + 4 and all(n in (1, m) for n, m in zip(g[1:-3], rows, strict=True)))
    if not fits or g[-3] * g[-1] > lanes or positions.ndim < 1:
        msg = (
            f"{name}: generators must be (A, G, n, n), or (A, *F, G, n, n) with F of {len(rows)} axes that broadcast to {rows} "
            f"(the leading axes of x), and G n at most {lanes}; got {g}."
        )
        raise ValueError(msg)
    check_rows(name, "positions", tuple(positions.shape[1:]), rows)
    work = wide(x.dtype, xp)
    turns = liere_rotations(positions, generators, dtype=work)
    if inverse:
        turns = xp.matrix_transpose(turns)
    blocks, n = g[-3], g[-1]
    lanes_of_blocks = xp.reshape(x[..., : blocks * n], (*rows, blocks, n, 1))
    turned = xp.reshape(xp.matmul(turns, cast(lanes_of_blocks, work)), (*rows, blocks * n))
    turned = cast(turned, x.dtype)
    return turned if blocks * n == lanes else xp.concat([turned, x[..., blocks * n :]], axis=-1)
