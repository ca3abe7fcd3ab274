"""
Judges eigenvectors of a graph's Laplacian up to their sign, and up to the basis of an eigenspace.

Tolerances follow from the solver. A backward stable one returns the eigenpairs of a matrix that differs from L by p(n) eps |L|
at most, with p a small multiple of n, and vectors that are orthonormal within p(n) eps; here |L| <= 2. An eigenspace then leans
by that error over the distance to the next eigenvalue (Davis and Kahan).
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import TargetError
from .assertion import on_host

Matrix = npt.NDArray[np.float64]
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
GROWTH = 4  # p(n) over n
ISOLATED = "a node without edges has 0 on the diagonal"
NAME = "assert_laplacian_eigenvectors"


def eigenvector_faults(vectors: Any, adjacency: Any, dropped: int, gap: float | None) -> list[str]:
    """Return what is wrong with the eigenvectors of a graph, in sentences; none if they are right."""
    graph, dtype = on_host(adjacency).astype(np.float64), str(getattr(vectors, "dtype", "float64")).rpartition(".")[2]
    if (
        graph.ndim != 2
        or graph.shape[0] != graph.shape[1]
        or not np.array_equal(graph, graph.T)
        or not (np.isfinite(graph) & (graph >= 0)).all()
    ):
        msg = f"{NAME}: adjacency must be a symmetric matrix with weights of at least 0; got shape {graph.shape}."
        raise TargetError(msg)
    if isinstance(dropped, bool) or not isinstance(dropped, int) or not 0 <= dropped <= len(graph):
        msg = f"{NAME}: dropped must be an int from 0 to {len(graph)}, the number of nodes; got {dropped!r}."
        raise TargetError(msg)
    if gap is not None and not 0 < gap < float("inf"):
        msg = f"{NAME}: gap must be a number above 0, or None; got {gap!r}."
        raise TargetError(msg)
    if dtype not in EPS:
        return [f"vectors must be float64, float32, float16 or bfloat16; got {dtype}"]
    x, n = np.asarray(on_host(vectors), dtype=np.float64), len(graph)
    if x.ndim != 2 or x.shape[0] != n or x.shape[1] > n - dropped:
        most = f"({n}, k) with k at most {n - dropped}, the number of nodes" + f" less the {dropped} dropped" * bool(dropped)
        return [f"vectors must have shape {most}; got {x.shape}"]
    if not np.isfinite(x).all():
        return [f"vector {int(np.argmin(np.isfinite(x).all(axis=0)))} is not finite"]
    allowed = 2 * GROWTH * max(n, 1) * EPS[dtype]
    faults = list(_faults(x, laplacian(graph), dropped, allowed, allowed**0.5 if gap is None else gap))
    return faults + [f"perhaps {cause}" for cause in _causes(x, graph, dropped, allowed)][: 1 if faults else 0]


def laplacian(graph: Matrix) -> Matrix:
    """Return the symmetric normalized Laplacian, with 1 on the whole diagonal."""
    edges = graph * (1 - np.eye(len(graph)))
    degrees = edges.sum(axis=1)
    roots = 1 / np.sqrt(np.where(degrees == 0, 1, degrees))
    result: Matrix = np.eye(len(graph)) - edges * roots[:, None] * roots
    return result


def _faults(x: Matrix, matrix: Matrix, dropped: int, allowed: float, gap: float) -> Iterator[str]:
    values, basis = np.linalg.eigh(matrix)
    n, k = x.shape
    products = x.T @ x - np.eye(k)
    if k and (worst := float(np.max(np.abs(products)))) > allowed:
        i, j = np.unravel_index(int(np.argmax(np.abs(products))), products.shape)
        what = (
            f"vector {i} has length {np.sqrt(products[i, i] + 1):.4g}, not 1"
            if i == j
            else f"vectors {i} and {j} are not orthogonal"
        )
        yield f"{what}: X^T X is off by {worst:.2g}, {allowed:.2g} is allowed"
    lengths = np.sum(x * x, axis=0)
    quotients = np.sum(x * (matrix @ x), axis=0) / np.where(lengths == 0, 1, lengths)
    residuals = np.linalg.norm(matrix @ x - x * quotients, axis=0)
    if k and (worst := float(np.max(residuals))) > allowed:
        at = int(np.argmax(residuals))
        yield f"vector {at} is no eigenvector: |L x - {quotients[at]:.4g} x| is {worst:.2g}, {allowed:.2g} is allowed"
    expected = values[dropped : dropped + k]
    if k and (worst := float(np.max(np.abs(quotients - expected)))) > allowed:
        at = int(np.argmax(np.abs(quotients - expected) > allowed))
        eigenvalue, other = (f"{round(each[at], 9) + 0.0:.6g}" for each in (quotients, expected))
        yield f"vector {at} has eigenvalue {eigenvalue}; it should be {other}"
    ends = [0, *(np.flatnonzero(np.diff(values) > gap) + 1), n]
    for first, end in pairwise(ends):
        low, high = max(first - dropped, 0), min(end - dropped, k)
        if low >= high:
            continue
        columns, space = x[:, low:high], basis[:, first:end] @ basis[:, first:end].T
        whole = high - low == end - first
        lean = np.linalg.norm((columns @ columns.T if whole else columns) - (space if whole else space @ columns), 2)
        outside = [abs(values[a] - values[b]) for a, b in ((first - 1, first), (end - 1, end)) if a >= 0 and b < n]
        limit = min(1.0, 2 * allowed * (1 + (high - low) ** 0.5 / min([*outside, 2.0])))
        if lean > limit:
            which = f"vector {low} does" if high - low == 1 else f"vectors {low} to {high - 1} do"
            verb = "span" if whole else "lie in"
            space_of = f"the eigenspace of {round(values[first], 9) + 0.0:.4g}, which has dimension {end - first}"
            yield f"{which} not {verb} {space_of}: off by {lean:.2g}, {limit:.2g} is allowed"


def _causes(x: Matrix, graph: Matrix, dropped: int, allowed: float) -> Iterator[str]:
    """Yield what the vectors would be right for, the likeliest first."""
    n, k = x.shape
    norms = np.linalg.norm(x, axis=0)
    unit = x / np.where(norms == 0, 1, norms)

    def solved(matrix: Matrix) -> bool:
        scale = max(1.0, float(np.linalg.norm(matrix, 2)) / 2)
        quotients = np.sum(unit * (matrix @ unit), axis=0)
        return bool(np.all(np.linalg.norm(matrix @ unit - unit * quotients, axis=0) <= allowed * scale))

    def ordered(matrix: Matrix, first: int) -> bool:
        """Return whether the vectors have the eigenvalues of a matrix from `first` on, in any order."""
        quotients = np.sort(np.sum(unit * (matrix @ unit), axis=0))
        return bool(np.all(np.abs(quotients - np.linalg.eigvalsh(matrix)[first : first + k]) <= allowed))

    right, edges, one = laplacian(graph), graph * (1 - np.eye(n)), np.eye(n)
    degrees = edges.sum(axis=1)
    bare = right - np.diag((degrees == 0).astype(np.float64))
    if not k:
        return
    if solved(right):
        yield from _faults_of_basis(unit, norms, allowed)
        others = [first for first in range(n - k + 1) if first != dropped and ordered(right, first)]
        if (degrees == 0).any() and ordered(bare, dropped):
            yield ISOLATED
        if others and others[0] == n - k:
            yield "the largest eigenvalues were taken"
        yield from (f"{first} eigenvectors were dropped, not {dropped}" for first in others)
        yield "the vectors are not in the order of the eigenvalues" if ordered(right, dropped) else "others were left out"
        return
    safe = np.where(degrees == 0, 1, degrees)
    known = {
        "they are of D - A, the Laplacian that is not normalized": np.diag(degrees) - edges,
        "they are of I - D^-1 A, the random-walk Laplacian": one - edges / safe[:, None],
        "they are of I - A D^-1, the transposed random-walk Laplacian": one - edges / safe,
        "the weights of edges are ignored": laplacian((graph > 0).astype(np.float64)),
        "edges of nodes to themselves are counted": one - (graph + one) / np.sqrt(np.outer(degrees + 1, degrees + 1)),
        "they are of the adjacency matrix": edges,
        ISOLATED: bare,
    }
    yield from (cause for cause, matrix in known.items() if solved(matrix))


def _faults_of_basis(unit: Matrix, norms: Matrix, allowed: float) -> Iterator[str]:
    """Yield why vectors of the right matrix are no orthonormal basis, of the vectors divided by their lengths."""
    products = np.abs(unit.T @ unit - np.eye(len(norms))) > allowed
    if (norms == 0).any():
        yield "columns without an eigenvector are filled with zeros"
    elif products.any() and np.linalg.matrix_rank(unit, tol=1e-3) < len(norms):
        yield "a vector is there more than once"
    elif products.any():
        yield "a solver for matrices of any kind (eig) made them: take one for symmetric matrices (eigh)"
    elif (np.abs(norms - 1) > allowed).any():
        yield "each vector must be divided by its length"
