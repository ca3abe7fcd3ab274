"""Random-walk encoding of nodes. Source: Dwivedi et al., arXiv:2110.07875, section 3.2."""

from posref.core.arrays import Array, beside, cast, library, namespace, number_system, wide
from posref.core.checks import check_integer, check_real
from posref.core.matrices import identity
from posref.core.products import matmul
from posref.spec import Axes, Integer, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Random-walk encoding of nodes (RWPE)",
    idea=(
        "A walker starts at a node of a graph and follows random edges. The probabilities of being back after 1, 2, 3, ... "
        "steps describe the node's surroundings: triangles, dead ends, long rings. They need no order of the nodes."
    ),
    family="absolute",
    source="arXiv:2110.07875, section 3.2",
    models=("GraphGPS", "LSPE"),
    domains={"steps": Integer(1, usual=4)},
    arrays={"adjacency": Axes("*B N N", low="0", usual=(0.0, 2.0))},
    result="*B N steps",
    rows="*B",
    sums=True,
    read={
        "DGL": "dmlc/dgl@3d16000, python/dgl/transforms/functional.py:3585-3611",
        "PyTorch Geometric": "torch-geometric 2.8.1, torch_geometric/transforms/add_positional_encoding.py:145-155",
        "GraphGPS": "rampasek/GraphGPS@2801570, graphgps/transform/posenc_stats.py:202-230",
        "LSPE": "vijaydwivedi75/gnn-lspe@6b38443, data/molecules.py:180-195",
    },
)
def random_walk_diagonals(adjacency: ArrayOf[T], /, *, steps: int) -> T:
    r"""
    Return the probabilities that a random walk from each node is back there after 1, 2, ..., `steps` steps.

    .. math:: E_{n,k} = (P^k)_{nn}, \qquad P_{nm} = \frac{A_{nm}}{\sum_l A_{nl}}, \qquad k = 1 \dots K

    where A is the adjacency matrix, K is `steps`, and a row of zeros of A is a row of zeros of P.

    Parameters
    ----------
    adjacency : array, real floating, shape ``(*B, N, N)``
        A, weights of at least 0: row n has the edges that leave node n. Two edges between the same nodes are one of the summed
        weight. Edges of a node to itself count.
    steps : int
        K, at least 1. 16 to 24 are usual.

    Returns
    -------
    array, shape ``(*B, N, K)``
        In the dtype of `adjacency`, between 0 and 1. It has no column for k = 0. A linear layer maps it to the width of the
        nodes' features, to which it is added or appended.

    Raises
    ------
    ValueError
        If `adjacency` is not real floating or not square, or `steps` is less than 1.

    Notes
    -----
    PyTorch Geometric (add_positional_encoding.py, issue 10098) and GraphGPS lose the weights of edges: they divide 1, not the
    weight, by the sum of the weights, PyTorch Geometric by at least 1. Without weights they agree with this. Of a doubled edge
    PyTorch Geometric counts one entry but degree 2, in graphs of up to 2000 nodes. DGL computes this.

    Examples
    --------
    A triangle with a tail:

    >>> import numpy as np
    >>> paw = np.asarray([[0.0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])
    >>> random_walk_diagonals(paw, steps=3).round(4).tolist()[0]
    [0.0, 0.4167, 0.1667]
    """
    name = "random_walk_diagonals"
    xp = library(name, adjacency=adjacency)
    check_real(name, adjacency=adjacency)
    steps = check_integer(name, "steps", steps, 1)
    if adjacency.ndim < 2 or adjacency.shape[-1] != adjacency.shape[-2]:
        msg = f"{name}: adjacency must be square, (..., nodes, nodes); got shape {tuple(adjacency.shape)}."
        raise ValueError(msg)
    if 0 in adjacency.shape:
        return cast(xp.broadcast_to(xp.sum(adjacency, axis=-1)[..., None], (*adjacency.shape[:-1], steps)), adjacency.dtype)
    walk = transitions(cast(adjacency, wide(adjacency.dtype, xp)))
    unit, power = identity(walk), walk
    columns = [xp.sum(power * unit, axis=-1)]
    for _ in range(steps - 1):
        power = matmul(power, walk)
        columns.append(xp.sum(power * unit, axis=-1))
    return cast(xp.stack(columns, axis=-1), adjacency.dtype)


@part()
def transitions(adjacency: Array, /) -> Array:
    """Return the probabilities of each step of a random walk. A node without edges has none."""
    xp = namespace(adjacency)
    degrees = xp.sum(adjacency, axis=-1, keepdims=True)
    degrees = xp.where(degrees == 0, beside(1.0, adjacency, adjacency.dtype), degrees)
    shares = adjacency / degrees
    system = number_system(xp)
    if system is not None:  # error bounds also cover the product with the inverse, as XLA divides by what is broadcast
        shares = system.either(shares, lambda: adjacency * (1 / degrees))
    return shares
