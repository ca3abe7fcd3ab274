"""The bias of forgetting attention (FoX). Source: Lin et al., arXiv:2503.02130, section 3."""

from posref.core.arrays import Array, cast, library, namespace, wide
from posref.core.checks import check_integer, check_real
from posref.spec import Axes, Integer, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Forgetting attention (FoX, data-dependent ALiBi, CABLE)",
    idea=(
        "Every token has a gate between 0 and 1 for each head, computed from its content. The bias of a key is the sum of the "
        "logarithms of all gates after it, up to the query. So a model learns when to forget what came before."
    ),
    family="bias",
    source="arXiv:2503.02130, section 3",
    models=("Forgetting Transformer",),
    domains={"queries": Integer(0, usual=5)},
    arrays={"log_gates": Axes("*B H K", high="0", usual=(-2.0, 0.0))},
    result="*B H queries K",
    rows="*B H",
    requires=("queries <= K",),
    sums=True,
    read={
        "FoX": (
            "zhixuan-lin/forgetting-transformer@883f260, "
            "src/forgetting_transformer/model/forgetting_transformer/modeling_forgetting_transformer.py:346"
        ),
        "x-transformers": (
            "x-transformers 2.31.10, x_transformers/x_transformers.py:719-744; x_transformers/attend.py:556, 569-570"
        ),
        "Forgetting Transformer": (
            "zhixuan-lin/forgetting-transformer@883f260, "
            "src/forgetting_transformer/model/forgetting_transformer/modeling_forgetting_transformer.py:346"
        ),
    },
)
def forgetting_bias(log_gates: ArrayOf[T], /, *, queries: int) -> T:
    r"""
    Return the sum of the logarithms of the gates between each key and each query.

    .. math:: B_{h,i,j} = c_{h,t} - c_{h,j}, \qquad c_{h,n} = \sum_{l=0}^{n} \ln f_{h,l}, \qquad t = K - Q + i

    where f_{h,l} is the forget gate of token l in head h, and t the token of query i: the queries are the last Q of the K
    tokens. For a key before the query this is the sum over the tokens j + 1, ..., t: the key's own gate does not count, the
    query's does. At j = t it is 0.

    Parameters
    ----------
    log_gates : array, real floating, shape ``(*B, H, K)``
        ln f, at most 0, of every token whose key is there, in the order of the text. FoX and x-transformers compute it as
        logsigmoid of a linear function of the layer's input, CABLE as minus softplus. Give padding tokens 0.
    queries : int
        Q, from 0 to K: how many of the tokens are queries, the last ones. K for a whole text, 1 for a decode step.

    Returns
    -------
    array, shape ``(*B, H, Q, K)``
        In the dtype of `log_gates`, in logit units. Add it after the 1/sqrt(D) scale, as FoX and x-transformers do. Keys after
        the query get a positive bias, so a causal mask is needed.

    Raises
    ------
    ValueError
        If `log_gates` is not real floating or has fewer than two axes, or `queries` is not an int from 0 to K.

    Notes
    -----
    The sums are in float32 or wider. In bfloat16 a sum past 256 loses whole units. CABLE's code (axiomlab/Cable) adds the bias
    to logits without a scale. For a model that also looks ahead, x-transformers adds the same bias of other gates, with keys
    and queries exchanged, above the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> forgetting_bias(np.log(np.asarray([[0.5, 0.25, 0.5, 1.0]])), queries=1).round(4).tolist()
    [[[-2.0794, -0.6931, 0.0, 0.0]]]
    """
    name = "forgetting_bias"
    xp = library(name, log_gates=log_gates)
    check_real(name, log_gates=log_gates)
    queries = check_integer(name, "queries", queries, 0)
    if log_gates.ndim < 2 or queries > log_gates.shape[-1]:
        msg = (
            f"{name}: log_gates must be (..., heads, keys), and queries at most the number of keys; got "
            f"{tuple(log_gates.shape)} and {queries}."
        )
        raise ValueError(msg)
    sums = gate_sums(cast(log_gates, wide(log_gates.dtype, xp)))
    of_queries = sums[..., sums.shape[-1] - queries :]
    return cast(of_queries[..., :, None] - sums[..., None, :], log_gates.dtype)


@part()
def gate_sums(log_gates: Array, /) -> Array:
    """Return the sum of each token's logarithm and those before it."""
    return namespace(log_gates).cumulative_sum(log_gates, axis=-1)
