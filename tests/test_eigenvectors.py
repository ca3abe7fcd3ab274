"""Eigenvectors of a graph's Laplacian: right in any sign and basis, and what is wrong is found and named."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from sampling import few

import posref
from posref.conformance.errors import TargetError
from posref.testing import assert_laplacian_eigenvectors as judged

RNG = np.random.default_rng(7)


def of_edges(n: int, *edges: tuple[int, int] | tuple[int, int, float]) -> Any:
    graph = np.zeros((n, n))
    for i, j, *weight in edges:
        graph[i, j] = graph[j, i] = (weight or [1.0])[0]
    return graph


def ring(n: int) -> Any:
    return of_edges(n, *((i, (i + 1) % n) for i in range(n)))


def beside(*graphs: Any) -> Any:
    sizes = np.cumsum([0, *map(len, graphs)])
    whole = np.zeros((sizes[-1], sizes[-1]))
    for at, graph in zip(sizes, graphs, strict=False):
        whole[at : at + len(graph), at : at + len(graph)] = graph
    return whole


def drawn(n: int, share: float) -> Any:
    upper = np.triu(RNG.random((n, n)) * (RNG.random((n, n)) < share), 1)
    return upper + upper.T


PATH = of_edges(5, (0, 1, 1.0), (1, 2, 2.0), (2, 3, 1.0), (3, 4, 1.0), (0, 2, 0.5))
GRAPHS = {
    "path": PATH,
    "ring": ring(6),
    "two edges": beside(ring(2), ring(2)),
    "edge and isolated node": beside(ring(2), np.zeros((1, 1))),
    "complete": 1 - np.eye(5),
    "star": of_edges(7, *((0, i) for i in range(1, 7))),
    "cube": of_edges(8, *((i, i ^ b) for i in range(8) for b in (1, 2, 4) if i < i ^ b)),
    "grid": of_edges(9, *((i, i + 1) for i in range(9) if i % 3 < 2), *((i, i + 3) for i in range(6))),
    "petersen": of_edges(10, *((i, (i + 1) % 5) for i in range(5)), *((i, i + 5) for i in range(5)),
                         *((5 + i, 5 + (i + 2) % 5) for i in range(5))),
    "rings and isolated nodes": beside(ring(5), ring(4), ring(5), np.zeros((3, 3))),
    "no edges": np.zeros((4, 4)),
    "random": drawn(12, 0.5),
    "sixty nodes": drawn(60, 0.15),
    "nearly two": beside(1 - np.eye(6), 1 - np.eye(6)) + of_edges(12, (0, 6, 1e-6)),
    "one node": np.zeros((1, 1)),
}  # fmt: skip


def laplacian(graph: Any, dtype: Any = np.float64) -> Any:
    graph = graph.astype(dtype)
    degrees = graph.sum(axis=1)
    inverse = np.where(degrees > 0, np.where(degrees > 0, degrees, 1) ** dtype(-0.5), 0).astype(dtype)
    return np.eye(len(graph), dtype=dtype) - inverse[:, None] * graph * inverse


def spaces(values: Any) -> list[Any]:
    return np.split(np.arange(len(values)), np.flatnonzero(np.diff(values) > 1e-8) + 1)


def any_basis(graph: Any) -> Any:
    """Eigenvectors whose eigenspaces have drawn orthogonal bases."""
    values, vectors = np.linalg.eigh(laplacian(graph))
    for space in spaces(values):
        vectors[:, space] = vectors[:, space] @ np.linalg.qr(RNG.standard_normal((len(space), len(space))))[0]
    return vectors


RIGHT: dict[str, Callable[[Any], Any]] = {
    "eigh": lambda g: np.linalg.eigh(laplacian(g))[1],
    "signs": lambda g: np.linalg.eigh(laplacian(g))[1] * RNG.choice([-1.0, 1.0], len(g)),
    "any basis": any_basis,
    "another basis": any_basis,
    "float32": lambda g: np.linalg.eigh(laplacian(g, np.float32))[1],
    "any basis in float32": lambda g: any_basis(g).astype(np.float32),
    "torch": lambda g: torch.linalg.eigh(torch.tensor(laplacian(g)))[1],
    "torch in float32": lambda g: torch.linalg.eigh(torch.tensor(laplacian(g, np.float32)))[1],
    "other order of nodes": lambda g: np.linalg.eigh(laplacian(g)[::-1, ::-1])[1][::-1],
    "singular vectors": lambda g: np.linalg.svd(2 * np.eye(len(g)) - laplacian(g))[0],
    "half precision": lambda g: any_basis(g).astype(np.float16),
}


@few(2, "graph", GRAPHS)
@pytest.mark.parametrize("way", RIGHT)
def test_right_vectors_pass_in_any_basis(graph: str, way: str) -> None:
    vectors, n = RIGHT[way](GRAPHS[graph]), len(GRAPHS[graph])
    for dropped, end in ((1, n), (0, n), (1, 1 + n // 3), (1, 1 + n // 2), (min(2, n), n)):
        judged(vectors[:, dropped:end], GRAPHS[graph], dropped=dropped)


def by_any_solver(graph: Any) -> Any:
    """As torch_geometric 2.8.1 does without is_undirected: `eig`, real parts, in the order of the eigenvalues."""
    values, vectors = np.linalg.eig(laplacian(graph))
    return np.real(vectors[:, np.real(values).argsort()])


def eigenvectors(graph: Any) -> Any:
    return np.linalg.eigh(laplacian(graph))[1]


def changed(graph: Any, change: Callable[[Any], Any]) -> Any:
    return np.linalg.eigh(change(graph))[1]


def walk(graph: Any) -> Any:
    degrees = graph.sum(axis=1)
    return eigenvectors(graph) / np.sqrt(np.where(degrees, degrees, 1))[:, None]


def mixed(x: Any, i: int, j: int, angle: float = 0.3) -> Any:
    x = x.copy()
    c, s = np.cos(angle), np.sin(angle)
    x[:, i], x[:, j] = c * x[:, i] - s * x[:, j], s * x[:, i] + c * x[:, j]
    return x


def entry(x: Any, by: float) -> Any:
    x = x.copy()
    x[0, 1] += by
    return x


def flipped(x: Any) -> Any:
    x = x.copy()
    x[0] *= -1
    return x


def unweighted(graph: Any) -> Any:
    return laplacian((graph > 0).astype(float))


def with_loops(graph: Any) -> Any:
    return laplacian(graph + np.eye(len(graph)))


def in_degrees(graph: Any) -> Any:
    degrees = (graph > 0).sum(axis=1)
    return np.eye(len(graph)) - graph / np.sqrt(np.outer(degrees, degrees).clip(1))


def without_last(graph: Any) -> Any:
    cut = graph.copy()
    i, j = np.argwhere(np.triu(graph))[-1]
    cut[i, j] = cut[j, i] = 0
    return laplacian(cut)


def all_but(n: int) -> Callable[[Any], Any]:
    return lambda g: np.concatenate(
        [eigenvectors(g)[:, :n], eigenvectors(g)[:, n + 1 :], eigenvectors(g)[:, n : n + 1]], axis=1
    )


def iterated(graph: Any) -> Any:
    """Thirty steps of a subspace iteration: not yet there."""
    x = RNG.standard_normal((len(graph), len(graph)))
    for _ in range(30):
        x = np.linalg.qr((2 * np.eye(len(graph)) - laplacian(graph)) @ x)[0]
    return x


def zero_of_isolated(graph: Any) -> Any:
    return laplacian(graph) - np.diag((graph.sum(axis=1) == 0).astype(float))


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {  # all columns, and a graph for which they are wrong
    "eig": (by_any_solver, "ring"),
    "eig of a cube": (by_any_solver, "cube"),
    "eig of rings": (by_any_solver, "rings and isolated nodes"),
    "unnormalized": (lambda g: changed(g, lambda a: np.diag(a.sum(axis=1)) - a), "grid"),
    "unnormalized path": (lambda g: changed(g, lambda a: np.diag(a.sum(axis=1)) - a), "path"),
    "random walk": (walk, "path"),
    "random walk of unit length": (lambda g: walk(g) / np.linalg.norm(walk(g), axis=0), "grid"),
    "adjacency": (lambda g: changed(g, lambda a: a), "grid"),
    "largest": (lambda g: eigenvectors(g)[:, ::-1], "path"),
    "nothing dropped": (lambda g: np.roll(eigenvectors(g), 1, axis=1), "path"),
    "nothing dropped in a ring": (lambda g: np.roll(eigenvectors(g), 1, axis=1), "ring"),
    "two dropped": (all_but(1), "path"),
    "two dropped of many": (all_but(1), "sixty nodes"),
    "one left out": (all_but(3), "random"),
    "weights ignored": (lambda g: changed(g, unweighted), "path"),
    "weights ignored in a random graph": (lambda g: changed(g, unweighted), "random"),
    "weights ignored in degrees": (lambda g: changed(g, in_degrees), "path"),
    "loops": (lambda g: changed(g, with_loops), "path"),
    "isolated in rings": (lambda g: changed(g, zero_of_isolated), "rings and isolated nodes"),
    "an edge lost": (lambda g: changed(g, without_last), "random"),
    "an edge lost of sixty": (lambda g: changed(g, without_last), "sixty nodes"),
    "lengths of root n": (lambda g: eigenvectors(g) * np.sqrt(len(g)), "petersen"),
    "times eigenvalue": (lambda g: eigenvectors(g) * np.linalg.eigvalsh(laplacian(g)), "path"),
    "largest entry 1": (lambda g: eigenvectors(g) / np.abs(eigenvectors(g)).max(axis=0), "complete"),
    "absolute": (lambda g: np.abs(eigenvectors(g)), "path"),
    "absolute in a ring": (lambda g: np.abs(eigenvectors(g)), "ring"),
    "a row flipped": (lambda g: flipped(eigenvectors(g)), "cube"),
    "nodes moved": (lambda g: np.roll(eigenvectors(g), 1, axis=0), "path"),
    "nodes moved in a star": (lambda g: np.roll(eigenvectors(g), 1, axis=0), "star"),
    "transposed": (lambda g: eigenvectors(g).T, "random"),
    "spaces mixed": (lambda g: mixed(eigenvectors(g), 1, 3), "grid"),
    "spaces mixed a little": (lambda g: mixed(eigenvectors(g), 1, 3, 1e-9), "path"),
    "spaces mixed in sixty": (lambda g: mixed(eigenvectors(g), 1, 2), "sixty nodes"),
    "order": (lambda g: eigenvectors(g)[:, [0, 2, 1, *range(3, len(g))]], "path"),
    "order of all": (lambda g: eigenvectors(g)[:, [0, *range(len(g) - 1, 0, -1)]], "star"),
    "one twice": (lambda g: eigenvectors(g)[:, [0, 1, 1, *range(3, len(g))]], "ring"),
    "zeros": (lambda g: eigenvectors(g) * (np.arange(len(g)) < 3), "ring"),
    "all zeros": (lambda g: 0 * eigenvectors(g), "two edges"),
    "nan": (lambda g: np.where(np.arange(len(g)) < 3, eigenvectors(g), np.nan), "ring"),
    "an entry": (lambda g: entry(eigenvectors(g), 1e-6), "cube"),
    "an entry in float32": (lambda g: entry(eigenvectors(g), 3e-4).astype(np.float32), "star"),
    "rounded to float16": (lambda g: eigenvectors(g).astype(np.float16).astype(np.float32), "petersen"),
    "float32 as float64": (lambda g: eigenvectors(g).astype(np.float32).astype(np.float64), "path"),
    "iterated": (iterated, "sixty nodes"),
    "random numbers": (lambda g: RNG.standard_normal((len(g), len(g))), "complete"),
    "random basis": (lambda g: np.linalg.qr(RNG.standard_normal((len(g), len(g))))[0], "grid"),
    "unit vectors": (lambda g: np.eye(len(g)), "two edges"),
    "components mixed": (lambda g: mixed(eigenvectors(g), 1, 2), "two edges"),
    "of the other graph": (lambda g: eigenvectors(GRAPHS["ring"][:5, :5]), "path"),
}
NAMED = {  # what the report supposes
    "eig": "for matrices of any kind", "eig of a cube": "for matrices of any kind", "unnormalized": "D - A",
    "unnormalized path": "D - A", "random walk": "I - D^-1 A", "random walk of unit length": "I - D^-1 A",
    "adjacency": "adjacency matrix", "nothing dropped": "0 eigenvectors were dropped",
    "two dropped": "2 eigenvectors were dropped",
    "weights ignored": "weights of edges are ignored", "loops": "to themselves", "lengths of root n": "divided by its length",
    "order": "not in the order", "one twice": "more than once", "zeros": "filled with zeros",
    "isolated in rings": "0 on the diagonal",
}  # fmt: skip


@pytest.mark.parametrize("way", WRONG)
def test_wrong_vectors_fail(way: str) -> None:
    make, graph = WRONG[way]
    n = len(GRAPHS[graph])
    columns = {"eig of a cube": n - 1, "eig of rings": n - 1, "components mixed": 2, "two dropped": 2, "one left out": 3}
    k = columns.get(way, min(4, n - 1))
    with pytest.raises(AssertionError) as raised:
        judged(make(GRAPHS[graph])[:, 1 : k + 1], GRAPHS[graph])
    assert NAMED.get(way, "") in str(raised.value)


def test_there_are_enough() -> None:
    assert len(GRAPHS) * len(RIGHT) >= 30
    assert len(WRONG) >= 30


def test_the_shape_and_the_dtype_are_judged() -> None:
    vectors = eigenvectors(PATH)
    for wrong, said in (
        (vectors[:4, 1:3], "shape"), (vectors, "shape"), (vectors[:, 1], "shape"), (vectors[:, 1:3] + 0j, "complex128"),
    ):  # fmt: skip
        with pytest.raises(AssertionError, match=said):
            judged(wrong, PATH)
    judged(vectors[:, 5:], PATH, dropped=5)


@pytest.mark.parametrize(
    ("adjacency", "options", "said"),
    [
        (np.triu(PATH), {}, "adjacency must be"),
        (-PATH, {}, "adjacency must be"),
        (PATH[0], {}, "adjacency must be"),
        (PATH + np.diag([np.inf] * 5), {}, "adjacency must be"),
        (PATH, {"dropped": 6}, "dropped must be"),
        (PATH, {"dropped": True}, "dropped must be"),
        (PATH, {"gap": 0.0}, "gap must be"),
    ],
)
def test_a_call_that_cannot_be_judged_is_refused(adjacency: Any, options: Any, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        judged(eigenvectors(PATH)[:, 1:], adjacency, **options)


def test_the_gap_decides_what_is_one_space() -> None:
    """Two eigenvectors of neighbouring eigenvalues mix in float32, and their space does not."""
    graph = GRAPHS["nearly two"]
    values = posref.laplacian_eigenvalues(graph)
    assert 1e-8 < values[1] - values[0] < 1e-6
    mixing = mixed(eigenvectors(graph), 0, 1).astype(np.float32)
    judged(mixing[:, :2], graph, dropped=0)
    with pytest.raises(AssertionError, match="is no eigenvector"):
        judged(mixed(eigenvectors(graph), 0, 1)[:, :2], graph, dropped=0)


@pytest.mark.parametrize("graph", [name for name in GRAPHS if len(GRAPHS[name]) <= 12])
def test_eigenvalues_and_projectors_are_those_of_fifty_digits(graph: str) -> None:
    adjacency = GRAPHS[graph]
    n = len(adjacency)
    with mpmath.workdps(50):
        degrees = [mpmath.fsum(map(mpmath.mpf, row)) for row in adjacency.tolist()]
        matrix = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                edge = mpmath.mpf(adjacency[i, j])
                matrix[i, j] = (i == j) - (edge / mpmath.sqrt(degrees[i] * degrees[j]) if edge else 0)
        exact, vectors = mpmath.eigsy(matrix)
        values = np.asarray([float(value) for value in exact])
        columns = np.asarray([[float(vectors[i, j]) for j in range(n)] for i in range(n)])
    found = posref.laplacian_eigenvalues(adjacency)
    assert np.max(np.abs(found - values)) < 1e-14
    projectors = posref.laplacian_projectors(adjacency, count=n, gap=1e-9)
    for space in spaces(values):
        expected = columns[:, space] @ columns[:, space].T
        apart = min([2.0, *np.abs(values[[i for i in range(n) if i not in space]] - values[space[0]])])
        for k in space:
            assert np.max(np.abs(projectors[k] - expected)) < 1e-14 / apart


def test_known_values() -> None:
    assert np.allclose(posref.laplacian_eigenvalues(PATH), [0, 0.3450513, 1.188812, 1.5782855, 1.8878511], atol=5e-8)
    first = np.asarray([-0.3417353, -0.3994159, -0.1628309, 0.567386, 0.6125709])
    assert np.allclose(posref.laplacian_projectors(PATH, count=2)[1], np.outer(first, first), atol=2e-7)
    assert np.allclose(posref.laplacian_eigenvalues(GRAPHS["two edges"]), [0, 0, 2, 2])
    assert np.allclose(posref.laplacian_eigenvalues(GRAPHS["edge and isolated node"]), [0, 1, 2])
    ringed = posref.laplacian_projectors(GRAPHS["ring"], count=2)
    assert np.allclose(np.trace(ringed, axis1=1, axis2=2), [1, 2])  # whole, also where count cuts it
    assert np.allclose(ringed[1, 0], np.asarray([2, 1, -1, -2, -1, 1]) / 6)


def test_functions_of_graphs_on_libraries_and_batches(library: Any) -> None:
    if library.name == "dask":
        with pytest.raises(NotImplementedError, match=r"needs linalg\.eigh, which .*dask.* lacks"):
            posref.laplacian_eigenvalues(library.array(PATH))
        return
    batch = library.array(np.stack([PATH, 2 * PATH + np.eye(5)]))  # loops and a common factor change nothing
    values, projectors = posref.laplacian_eigenvalues(batch), posref.laplacian_projectors(batch, count=3)
    for at in range(2):
        assert np.allclose(library.host(values)[at], posref.laplacian_eigenvalues(PATH), atol=1e-6)
        assert np.allclose(library.host(projectors)[at], posref.laplacian_projectors(PATH, count=3), atol=1e-5)
    assert values.dtype == batch.dtype
    with pytest.raises(ValueError, match="count must be at most 5"):
        posref.laplacian_projectors(batch, count=6)
    with pytest.raises(ValueError, match="adjacency must be square"):
        posref.laplacian_eigenvalues(batch[:, :3, :])
