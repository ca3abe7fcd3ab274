"""The orthogonal matrix of Cayley-STRING. Source: Schenck et al., arXiv:2502.02562, equation (10)."""

from posref.core.arrays import DType, cast, result_dtype
from posref.core.checks import check_numbers
from posref.core.matrices import cayley_transform, matrix_dtype, skew_symmetric
from posref.spec import Axes, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Cayley transform",
    idea=(
        "Most matrices are not rotations, so a rotation is hard to learn directly. The Cayley transform makes a rotation from "
        "any list of learned numbers. Cayley-STRING uses it to learn in which directions RoPE should rotate."
    ),
    family="rotary",
    source="arXiv:2502.02562, equation (10)",
    models=("Cayley-STRING",),
    invariants=("orthogonal",),
    arrays={"skew": Axes("n n | *R n n", "wide", usual=(-0.5, 0.5))},
    result="=skew",
    rows="*R",
    requires=("n >= 1",),
    noun="basis",
    rounded=("skew",),
)
def cayley(skew: ArrayOf[T], /, *, dtype: DType | None = None) -> T:
    r"""
    Return the Cayley transform of learned skew-symmetric matrices, which is orthogonal.

    .. math:: U = (I - S)(I + S)^{-1}, \qquad S_{ij} = s_{ij}, \quad S_{ji} = -s_{ij} \quad (i < j), \qquad S_{ii} = 0

    Parameters
    ----------
    skew : array, real floating, shape ``(*F, n, n)``
        s. Only the strict upper triangle is used; entries on and below the diagonal are ignored. Gradients flow back to it.
    dtype : data type, optional
        Dtype of the result. None means the dtype of `skew`.

    Returns
    -------
    array, shape ``(*F, n, n)``
        U, which the paper calls P. It exists for every s, because I + S always has an inverse. The inverse of U is its
        transpose, which is also the Cayley transform of -S.

    Raises
    ------
    ValueError
        If `skew` does not hold square matrices.

    Notes
    -----
    The transform is computed in float64 if the library has it, else in float32. PyTorch's
    ``orthogonal(..., orthogonal_map="cayley")`` is :math:`(I - A/2)^{-1} (I + A/2)`, where A is the skew-symmetric matrix with
    the lower triangle of the parameter. So :math:`s_{ij}` is half the parameter at (j, i). Other code makes a skew-symmetric
    matrix by subtracting the transpose of a full one, and may halve the difference.

    Examples
    --------
    >>> import numpy as np
    >>> cayley(np.asarray([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """
    check_numbers("cayley", skew=skew)
    if skew.ndim < 2 or skew.shape[-1] != skew.shape[-2]:
        msg = f"cayley: skew must be square matrices, (..., n, n); got shape {tuple(skew.shape)}."
        raise ValueError(msg)
    work = matrix_dtype(skew)
    return cast(cayley_transform(skew_symmetric(cast(skew, work))), result_dtype("cayley", skew, dtype))
