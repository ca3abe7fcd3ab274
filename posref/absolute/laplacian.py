"""
Eigenvalues and eigenspaces of a graph's Laplacian. Sources: Dwivedi and Bresson, arXiv:2012.09699; arXiv:2003.00982, 4.1.

They are functions, and no operations with vectors. An error bound of a projector needs the distance to the next eigenvalue of
the whole matrix, and the bounds of operations follow one number from step to step. Cases are drawn from axes, which cannot say
that a matrix is symmetric. `posref.testing.assert_laplacian_eigenvectors` has the bound of Davis and Kahan instead.
"""

from posref.core.arrays import Array, beside, cast, library, namespace
from posref.core.checks import check_integer, check_positive, check_real
from posref.core.matrices import identity, matrix_dtype
from posref.core.products import matmul
from posref.types import ArrayOf, T


def laplacian_eigenvalues(adjacency: ArrayOf[T], /) -> T:
    r"""
    Return the eigenvalues of the symmetric normalized Laplacian of a graph, in increasing order.

    .. math:: L = I - D^{-1/2} A D^{-1/2}, \qquad D_{nn} = \sum_m A_{nm}

    where A is the adjacency matrix without its diagonal. A node without edges has :math:`L_{nn} = 1`, as in PyTorch Geometric
    and DGL, so its eigenvalue is 1.

    Parameters
    ----------
    adjacency : array, real floating, shape ``(*B, N, N)``
        A, symmetric, with weights of at least 0. Edges of a node to itself do not count. That it is symmetric is not checked.

    Returns
    -------
    array, shape ``(*B, N)``
        In the dtype of `adjacency`, from 0 to 2. 0 comes once for each component that has an edge.

    Raises
    ------
    ValueError
        If `adjacency` is not real floating or not square.
    NotImplementedError
        If the array library has no ``linalg.eigh``.

    Notes
    -----
    Eigenvalues are determined. Eigenvectors are not: the sign of each is free, and of a multiple eigenvalue the whole basis.
    `laplacian_projectors` has what is determined of them, and `posref.testing.assert_laplacian_eigenvectors` judges them.

    Examples
    --------
    A ring of six nodes:

    >>> import numpy as np
    >>> ring = np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
    >>> (laplacian_eigenvalues(ring).round(6) + 0.0).tolist()
    [0.0, 0.5, 0.5, 1.5, 1.5, 2.0]
    """
    return cast(_decomposed("laplacian_eigenvalues", adjacency)[0], adjacency.dtype)


def laplacian_projectors(adjacency: ArrayOf[T], /, *, count: int, gap: float = 1e-3) -> T:
    r"""
    Return for each of the smallest eigenvalues of a graph's Laplacian the projector onto its eigenspace.

    .. math:: \Pi_k = \sum_{l \sim k} u_l u_l^T

    where :math:`u_l` are orthonormal eigenvectors of the Laplacian of `laplacian_eigenvalues`, and :math:`l \sim k` if no two
    neighbours of the eigenvalues from l to k, in their order, are farther apart than `gap`.

    Parameters
    ----------
    adjacency : array, real floating, shape ``(*B, N, N)``
        A, symmetric, with weights of at least 0. Edges of a node to itself do not count.
    count : int
        How many eigenvalues, the smallest ones, from 1 to N. The first, 0, is among them: k channels need k + 1.
    gap : float
        Eigenvalues that are no farther apart have one space, above 0. Two eigenvectors mix by the rounding error over the
        distance of their eigenvalues, and their common projector does not.

    Returns
    -------
    array, shape ``(*B, count, N, N)``
        In the dtype of `adjacency`. Eigenvalues of one space have the same projector, of the whole space also where `count`
        cuts it. The trace is the dimension of the space.

    Raises
    ------
    ValueError
        If `adjacency` is not real floating or not square, `count` is not from 1 to N, or `gap` is not above 0.
    NotImplementedError
        If the array library has no ``linalg.eigh``.

    Notes
    -----
    BasisNet (arXiv:2202.13013) takes projectors as its input, and SignNet :math:`\phi(u) + \phi(-u)`. Gradients by automatic
    differentiation divide by the distances of eigenvalues: they are not finite where an eigenvalue is multiple.

    Examples
    --------
    >>> import numpy as np
    >>> ring = np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
    >>> laplacian_projectors(ring, count=3)[1, 0].round(4).tolist()
    [0.3333, 0.1667, -0.1667, -0.3333, -0.1667, 0.1667]
    """
    name = "laplacian_projectors"
    values, vectors = _decomposed(name, adjacency)
    count, gap = check_integer(name, "count", count, 1), check_positive(name, "gap", gap)
    if count > values.shape[-1]:
        msg = f"{name}: count must be at most {values.shape[-1]}, the number of nodes; got {count}."
        raise ValueError(msg)
    xp = namespace(values)
    jump = xp.astype(values[..., 1:] - values[..., :-1] > gap, values.dtype)
    space = xp.cumulative_sum(jump, axis=-1, include_initial=True)
    same = xp.astype(space[..., :count, None] == space[..., None, :], values.dtype)  # (*B, count, N)
    return cast(
        matmul(vectors[..., None, :, :] * same[..., None, :], xp.matrix_transpose(vectors)[..., None, :, :]), adjacency.dtype
    )


def _decomposed(name: str, adjacency: Array) -> tuple[Array, Array]:
    """Return the eigenvalues and orthonormal eigenvectors, in the widest dtype of the library."""
    xp = library(name, adjacency=adjacency)
    check_real(name, adjacency=adjacency)
    if adjacency.ndim < 2 or adjacency.shape[-1] != adjacency.shape[-2]:
        msg = f"{name}: adjacency must be square, (..., nodes, nodes); got shape {tuple(adjacency.shape)}."
        raise ValueError(msg)
    solve = getattr(getattr(xp, "linalg", None), "eigh", None)
    if solve is None:
        msg = f"{name}: needs linalg.eigh, which {xp.__name__} lacks; pass a NumPy array."
        raise NotImplementedError(msg)
    edges = cast(adjacency, matrix_dtype(adjacency))
    unit = identity(edges)
    edges = edges * (1 - unit)
    degrees = xp.sum(edges, axis=-1)
    roots = 1 / xp.sqrt(xp.where(degrees == 0, beside(1.0, edges, edges.dtype), degrees))
    values, vectors = solve(unit - edges * roots[..., :, None] * roots[..., None, :])
    return values, vectors
