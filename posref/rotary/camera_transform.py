"""Attention between cameras: blocks of channels times given matrices. Source: Miyato et al., GTA, arXiv:2310.10375."""

from typing import Literal, get_args

from posref.core.arrays import Array, cast, library, namespace, wide
from posref.core.checks import check_frequencies, check_integer, check_lanes, check_rows, check_word
from posref.core.products import matmul
from posref.spec import Axes, Integer, OneOf, encoding, part
from posref.types import ArrayOf, T

Role = Literal["query", "key_value", "output"]
ROLES: tuple[Role, ...] = get_args(Role)


@encoding(
    title="Camera transforms of attention (GTA, PRoPE, UCPE)",
    idea=(
        "Every token has the matrix of the camera, or the ray, that sees it. Queries, keys, values and the output are "
        "multiplied by it, four channels at a time. Products of a query and a key then depend on the one camera relative to "
        "the other, and values arrive as the query's camera would see them."
    ),
    family="rotary",
    source="arXiv:2310.10375, equations (5) to (7)",
    models=("GTA", "PRoPE", "UCPE", "SANA-WM"),
    domains={"role": OneOf(ROLES), "blocks": Integer(1, usual=16)},
    arrays={
        "x": Axes("*R T blocks*n+E | *R T blocks*n+E | B H T blocks*n+E"),
        "matrices": Axes("T n n | *R T n n | B 1 T n n", "wide"),
        "inverses": Axes("T n n | *R T n n | B 1 T n n", "wide"),
    },
    result="=x",
    rows="*R B H T",
    requires=("n >= 1", "H > 1"),
    sums=True,
    read={
        "UCPE": "diffusers 0.42.1, diffusers/models/transformers/transformer_sana_wm.py:927-942",
        "diffusers": "diffusers 0.42.1, diffusers/models/transformers/transformer_sana_wm.py:983-1030",
        "SANA-WM": "diffusers 0.42.1, diffusers/models/transformers/transformer_sana_wm.py:905-944",
        "GTA": "autonomousvision/gta@1dcbd37, source/utils/gta.py:158-168",
    },
)
def camera_transform(x: ArrayOf[T], matrices: ArrayOf[T], inverses: ArrayOf[T], /, *, role: Role, blocks: int) -> T:
    r"""
    Return `x` with its first blocks of n channels multiplied by the matrix of their token; `role` chooses the matrix.

    .. math:: q' = P_t^T q, \qquad k' = P_t^{-1} k, \qquad v' = P_t^{-1} v, \qquad o' = P_t \, o

    for each block of n channels, a column, where P_t is the matrix of token t. So :math:`q'^T k' = q^T P_m P_n^{-1} k`, and
    the output of query m is a mean of :math:`P_m P_n^{-1} v`.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, T, D)``
        Queries, keys or values, or the output of attention before the heads are joined.
    matrices : array, at least float32, shape ``(T, n, n)`` or ``(*F, T, n, n)``
        P, one matrix for each token. The caller makes them: in GTA of the view's world-to-camera matrix, in PRoPE of intrinsics
        times that matrix, the same for all tokens of an image, and in UCPE of the ray of each token. n is 4 for cameras. F has
        an axis for each axis of R, of the same size or 1.
    inverses : array, the same shape
        The inverses of `matrices`.
    role : {"query", "key_value", "output"}
        What `x` is.

        - ``"query"``: Queries: times the transposes of `matrices`.
        - ``"key_value"``: Keys or values: times `inverses`.
        - ``"output"``: The output: times `matrices`.
    blocks : int
        How many blocks of n channels are multiplied, the first ones. The other channels are unchanged. In PRoPE and UCPE these
        are half of the head's channels, D / 8 blocks; then axial RoPE rotates the others, of queries, keys and values, and
        rotates the output back.

    Returns
    -------
    array, shape ``(*R, T, D)``
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If `role` is unknown, `blocks` is less than 1 or too many, x is not real floating, or matrices do not fit.

    Notes
    -----
    PRoPE rotates its last half by negative angles: a quarter of the head by the column of the token, then a quarter by the row,
    in layout "half" with base 100. UCPE (transformer_sana_wm.py of diffusers) rotates it by positive angles in layout
    "interleaved". PRoPE first normalizes intrinsics: it divides their first row by the width of the image and their second by
    the height, and subtracts 0.5 from both principal points. Logits are divided by the root of D as ever.

    Examples
    --------
    >>> import numpy as np
    >>> shear = np.asarray([[[1.0, 2.0], [0.0, 1.0]]])
    >>> camera_transform(np.asarray([[1.0, 1.0, 5.0]]), shear, np.linalg.inv(shear), role="query", blocks=1).tolist()
    [[1.0, 3.0, 5.0]]
    """
    name = "camera_transform"
    check_word(name, "role", role, ROLES)
    blocks = check_integer(name, "blocks", blocks, 1)
    xp = library(name, x=x, matrices=matrices, inverses=inverses)
    check_lanes(name, "x", x)
    check_frequencies(name, "matrices", matrices)
    check_frequencies(name, "inverses", inverses)
    shape, of = tuple(x.shape), tuple(matrices.shape)
    if len(of) < 3 or of[-1] != of[-2] or tuple(inverses.shape) != of or blocks * of[-1] > shape[-1]:
        msg = (
            f"{name}: matrices and inverses must be (..., tokens, n, n), the same shape, with blocks * n at most {shape[-1]} "
            f"(the last axis of x); got {of} and {tuple(inverses.shape)} with blocks={blocks}."
        )
        raise ValueError(msg)
    check_rows(name, "matrices", of[:-2], shape[:-1])
    work, end = wide(x.dtype, xp), blocks * of[-1]
    chosen = matrix_of(role, cast(matrices, work), cast(inverses, work))
    columns = xp.reshape(cast(x[..., :end], work), (*shape[:-1], blocks, of[-1], 1))
    changed = cast(xp.reshape(matmul(chosen[..., None, :, :], columns), (*shape[:-1], end)), x.dtype)
    return changed if end == shape[-1] else xp.concat([changed, x[..., end:]], axis=x.ndim - 1)


@part()
def matrix_of(role: Role, matrices: Array, inverses: Array, /) -> Array:
    """Return what multiplies a column of channels in this role."""
    if role == "query":
        return namespace(matrices).matrix_transpose(matrices)
    return inverses if role == "key_value" else matrices
