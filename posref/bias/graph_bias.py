"""Spatial and edge bias of Graphormer. Source: Ying et al., arXiv:2106.05234, sections 3.1.2 and 3.1.3."""

from posref.core.arrays import Array, cast, clipped, library, namespace, rows, whole, wide, with_axis_moved
from posref.core.checks import check_broadcast, check_real
from posref.core.products import matmul
from posref.spec import Axes, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Spatial and edge bias of graphs (Graphormer)",
    idea=(
        "Nodes of a graph have no order, but a shortest path leads from one to another. Every attention head has a learned "
        "number for each length of that path. To it comes the mean, along the path, of products of the edges' features with "
        "learned vectors, one for each step."
    ),
    family="bias",
    source="arXiv:2106.05234, equations (6) and (7)",
    models=("Graphormer",),
    arrays={
        "distances": Axes("*B Q K", "integer", low="-1"),
        "table": Axes("N H"),
        "edges": Axes("*B Q K L E"),
        "weights": Axes("L E H"),
    },
    result="*B H Q K",
    rows="*B H Q K",
    requires=("N >= 2", "L >= 1", "E >= 1"),
    sums=True,
    read={
        "Graphormer": "microsoft/Graphormer@ac154fe, graphormer/modules/graphormer_layers.py:100-165",
        "DGL": "dmlc/dgl@3d16000, python/dgl/nn/pytorch/gt/path_encoder.py:56-88",
    },
)
def graph_bias(distances: ArrayOf[T], table: ArrayOf[T], edges: ArrayOf[T], weights: ArrayOf[T], /) -> T:
    r"""
    Return the bias of every pair of nodes: a learned number for the length of their path, and a mean over its edges.

    .. math:: B_{h,i,j} = b_{\min(d_{ij}, N-2) + 1,\, h} + \frac{1}{\min(\max(d_{ij}, 1), L)}
        \sum_{l=0}^{L-1} \sum_{c=0}^{E-1} e_{ijlc} \, w_{lch}

    where d_ij is the length of the shortest path from node i to node j, N the number of rows of the table b, e_ijl the features
    of its edge l and w the learned vectors of each step and head.

    Parameters
    ----------
    distances : array, integer, shape ``(*B, Q, K)``
        d, in edges: 0 from a node to itself, -1 where no path leads or a node is padding.
    table : array, real floating, shape ``(N, H)``
        b, learned. Row 0 is for -1 and is 0 in both libraries. Row n + 1 is for distance n, and the last row for all from
        N - 2 on.
    edges : array, real floating, shape ``(*B, Q, K, L, E)``
        e, the features of the first L edges of each path, in its order; 0 beyond its end. Without features pass zeros.
    weights : array, real floating, shape ``(L, E, H)``
        w, learned. In DGL ``embedding_table.weight.reshape(L, H, E)``, with the last two axes exchanged. In Graphormer
        ``edge_dis_encoder.weight.reshape(-1, H, H)[:L]``, with as many features as heads.

    Returns
    -------
    array, shape ``(*B, H, Q, K)``
        In logit units, in the dtype of `table`. Add it after the 1/sqrt(D) scale. DGL has the heads last.

    Raises
    ------
    ValueError
        If distances are not integers, another array is not real floating, or a shape does not fit.

    Notes
    -----
    Graphormer gives 510 to pairs without a path, not -1, so that they have the last row of its table of 512. It counts
    distances from 1, with 0 for padding. Its features are the mean of learned vectors of the edge's attributes. Its virtual
    node, linked to all others, has one more learned number, for its row and column of the bias. Its centrality is two rows of
    `learned`, by the degrees of the node, added to the node's features. DGL's modules (SpatialEncoder, PathEncoder) return the
    two terms apart.

    Examples
    --------
    >>> import numpy as np
    >>> distances, table = np.asarray([[0, 2, -1]]), np.asarray([[0.0], [1.0], [2.0], [3.0]])
    >>> edges, weights = np.ones((1, 3, 2, 1)), np.asarray([[[0.5]], [[0.25]]])
    >>> graph_bias(distances, table, edges, weights)[0, 0, :2].tolist()
    [1.75, 3.375]
    """
    name = "graph_bias"
    xp = library(name, distances=distances, table=table, edges=edges, weights=weights)
    check_real(name, table=table, edges=edges, weights=weights)
    if distances.ndim < 2:
        msg = f"{name}: distances must be (..., nodes, nodes); got shape {tuple(distances.shape)}."
        raise ValueError(msg)
    if table.ndim != 2 or table.shape[0] < 2:
        msg = f"{name}: table must be (rows, heads), a row for -1 and at least one more; got shape {tuple(table.shape)}."
        raise ValueError(msg)
    if weights.ndim != 3 or 0 in weights.shape[:2] or weights.shape[2] != table.shape[1]:
        msg = (
            f"{name}: weights must be (edges, features, {table.shape[1]}), with heads as in table; got {tuple(weights.shape)}."
        )
        raise ValueError(msg)
    if edges.ndim < 4 or tuple(edges.shape[-2:]) != tuple(weights.shape[:2]):
        need = f"(..., nodes, nodes, {weights.shape[0]}, {weights.shape[1]})"
        msg = f"{name}: edges must be {need}, with the first axes of weights; got {tuple(edges.shape)}."
        raise ValueError(msg)
    check_broadcast(name, "distances and pairs of edges", distances.shape, edges.shape[:-2])
    d, work = whole(name, "distances", distances), wide(table.dtype, xp)
    spatial = rows(cast(table, work), spatial_rows(d, table.shape[0]))
    bias = spatial + path_mean(cast(edges, work), cast(weights, work), d)
    return cast(with_axis_moved(bias, -1, -3), table.dtype)


@part()
def spatial_rows(d: Array, count: int, /) -> Array:
    """Return the row of every distance."""
    return clipped(d, -1, count - 2) + 1


@part()
def path_mean(edges: Array, weights: Array, d: Array, /) -> Array:
    """Return the mean over the edges of every path, (*B, Q, K, H)."""
    xp = namespace(edges)
    length, features, heads = weights.shape
    summed = matmul(xp.reshape(edges, (*edges.shape[:-2], length * features)), xp.reshape(weights, (length * features, heads)))
    return summed / cast(clipped(d, 1, length), edges.dtype)[..., None]
