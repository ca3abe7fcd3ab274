"""Forgetting gates for each query and key. Source: GRAPE-AP, arXiv:2512.07805; x-transformers."""

from typing import Literal

from posref.core.arrays import Array, Beside, beside, cast, index_dtype, library, number_system, suffix_sums, wide
from posref.core.checks import check_real, check_word
from posref.spec import Axes, OneOf, encoding, part
from posref.types import ArrayOf, T

COUNTED = ("query", "key")


@encoding(
    title="Forgetting gates by rows (GRAPE-AP, per-row data-dependent ALiBi)",
    idea=(
        "Every query has gates of its own for all tokens before it, computed from the contents of both. The bias of a key is "
        "the sum of the logarithms of these gates from the key to the query. So each query decides itself what to forget."
    ),
    family="bias",
    source="arXiv:2512.07805 (GRAPE-AP)",
    models=("GRAPE-AP", "x-transformers"),
    domains={"counted": OneOf(COUNTED)},
    arrays={"log_gates": Axes("*B H Q K", high="0", usual=(-1.0, 0.0))},
    result="*B H Q K",
    rows="*B H",
    requires=("Q <= K",),
    sums=True,
    read={
        "GRAPE-AP": "model-architectures/GRAPE@f5b539f, model/llama-mha-grape-ap-v1.py:179-184",
        "x-transformers": "x-transformers 2.31.10, x_transformers/x_transformers.py:771-790",
    },
)
def row_forgetting_bias(log_gates: ArrayOf[T], /, *, counted: Literal["query", "key"]) -> T:
    r"""
    Return the sum of the logarithms of a query's gates between each key and the query.

    .. math:: B_{h,i,j} = \sum_{l=j+1}^{t} \ln f_{h,i,l} \;\; \text{or} \;\; \sum_{l=j}^{t-1} \ln f_{h,i,l}, \qquad
        t = K - Q + i

    where f_{h,i,l} is the gate of query i for token l in head h, and t the token of query i: the queries are the last Q of the
    K tokens. At j = t, and for keys after the query, the bias is 0.

    Parameters
    ----------
    log_gates : array, real floating, shape ``(*B, H, Q, K)``
        ln f, at most 0, of every query and token. Gates of tokens after the query are not read into any sum.
    counted : {"query", "key"}
        Which end of the sum counts.

        - ``"query"``: The query's own gate counts, and the key's does not, as in `forgetting_bias`. Used by GRAPE-AP.
        - ``"key"``: The key's own gate counts, and the query's does not. Used by x-transformers.

    Returns
    -------
    array, shape ``(*B, H, Q, K)``
        In the dtype of `log_gates`, in logit units. Add it after the 1/sqrt(D) scale. It does not hide keys after the query.

    Raises
    ------
    ValueError
        If `log_gates` is not real floating, has fewer than three axes or more queries than keys, or `counted` is not one of
        the two words.

    Notes
    -----
    GRAPE-AP multiplies ALiBi's slope of the head into each logarithm: it is logsigmoid of the product of two projections, of
    which one is rotated with base 1, over their width. x-transformers divides by the root of the width. Code that subtracts
    sums from the row's total leaves 1e-7 on the diagonal, where the bias is 0.

    Examples
    --------
    >>> import numpy as np
    >>> gates = np.log(np.asarray([[[0.5, 0.25, 0.5, 1.0]]]))
    >>> (row_forgetting_bias(gates, counted="query").round(4) + 0.0).tolist()
    [[[-2.0794, -0.6931, 0.0, 0.0]]]
    >>> (row_forgetting_bias(gates, counted="key").round(4) + 0.0).tolist()
    [[[-2.7726, -2.0794, -0.6931, 0.0]]]
    """
    name = "row_forgetting_bias"
    xp = library(name, log_gates=log_gates)
    check_real(name, log_gates=log_gates)
    check_word(name, "counted", counted, COUNTED)
    if log_gates.ndim < 3 or log_gates.shape[-2] > log_gates.shape[-1]:
        msg = f"{name}: log_gates must be (..., heads, queries, keys), queries at most as many as keys; got {log_gates.shape}."
        raise ValueError(msg)
    queries, keys = log_gates.shape[-2:]
    tokens = Beside(log_gates).arange(0, keys, 1, dtype=index_dtype(log_gates))
    ends = tokens[keys - queries :, None]
    work = wide(log_gates.dtype, xp)
    zero = beside(0.0, log_gates, work)
    inside = xp.where(tokens <= ends if counted == "query" else tokens < ends, cast(log_gates, work), zero)
    sums = sums_from(inside)
    if counted == "query":
        sums = xp.concat([sums[..., 1:], 0.0 * sums[..., :1]], axis=-1)
        if number_system(xp) is not None:  # error bounds also cover the total less a cumulative sum
            total = xp.sum(inside, axis=-1, keepdims=True)
            sums = xp.either(sums, lambda: total - xp.cumulative_sum(inside, axis=-1))
    return cast(sums, log_gates.dtype)


@part()
def sums_from(gates: Array, /) -> Array:
    """Return the sum of each element and all after it, along the last axis."""
    return suffix_sums(gates)
