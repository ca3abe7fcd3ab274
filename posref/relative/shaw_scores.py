"""Relative position representations. Source: Shaw et al., arXiv:1803.02155, equations (3) and (4)."""

from typing import Literal, get_args

from posref.core.arrays import Array, cast, library
from posref.core.checks import check_real, check_word
from posref.core.products import matmul
from posref.relative.shaw_table import DOMAINS, PLACES, Order, Outside, vectors_of, widened
from posref.spec import Axes, OneOf, encoding, part
from posref.types import ArrayOf, T

Terms = Literal["query", "query_and_key"]
TERMS: tuple[Terms, ...] = get_args(Terms)


@encoding(
    title="Relative position keys (Shaw et al.)",
    idea=(
        "For every distance, such as 3 tokens back, there is a learned vector. It is added to the key before the product with "
        "the query. So a query can look for content and distance at once. All distances beyond a limit share one vector."
    ),
    family="relative",
    source="arXiv:1803.02155, equation (4)",
    models=("Music Transformer", "SpeechT5", "Wav2Vec2-BERT", "VITS", "BERT (relative_key)", "NEZHA", "Inkling"),
    domains={**DOMAINS, "terms": OneOf(TERMS)},
    invariants=("shift invariant", "decode"),
    arrays={"q": Axes("*R Q D", usual=(-1.0, 1.0)), "k": Axes("*R K D"), "key_table": Axes("left+right+1 D"), **PLACES},
    result="*R Q K",
    rows="*R Q K",
    sums=True,
    read={
        "SpeechT5": "transformers 5.23.0, models/speecht5/modeling_speecht5.py:425-441",
        "Shaw et al.'s paper": "arXiv:1803.02155, section 3.2",
        "VITS": "transformers 5.23.0, models/vits/modeling_vits.py:960-984",
        "BERT's relative_key": "transformers 4.57.1, models/bert/modeling_bert.py:277-294",
        "relative_key_query": "transformers 4.57.1, models/bert/modeling_bert.py:294-299",
        "Wav2Vec2-BERT": "transformers 5.23.0, models/wav2vec2_bert/modeling_wav2vec2_bert.py:305-317",
        "NEZHA": "transformers 4.57.1, models/deprecated/nezha/modeling_nezha.py:133-162",
        "BERT (relative_key)": "transformers 4.57.1, models/bert/modeling_bert.py:277-294",
        "Music Transformer": "magenta/magenta@526d3eb, magenta/models/score2perf/score2perf_hparams.py:106",
    },
)
def shaw_scores(
    q: ArrayOf[T],
    k: ArrayOf[T],
    key_table: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    left: int,
    right: int,
    order: Order,
    outside: Outside = "clip",
    terms: Terms = "query",
) -> T:
    r"""
    Return query-key products, after adding to each key a learned vector for its clipped distance from the query.

    .. math:: e_{ij} = q_i \cdot (k_j + a_{ij}), \qquad a_{ij} = A_{c(p_j - p_i) + l}, \qquad c(n) = \min(\max(n, -l), r)

    where q_i and k_j are query i and key j, p_i and p_j their positions, A_n row n of the table, counted from 0, l = `left` and
    r = `right`. With `order` "query_minus_key", c(p_i - p_j) replaces c(p_j - p_i). With `outside` "zero", a_ij is 0 where the
    difference is below -l or above r. With `terms` "query_and_key" the key meets the vector too, as in method 4 of Huang et
    al., arXiv:2009.13658:

    .. math:: e_{ij} = q_i \cdot k_j + q_i \cdot a_{ij} + k_j \cdot a_{ij}

    Parameters
    ----------
    q : array, real floating, shape ``(*R, Q, D)``
        Queries.
    k : array, real floating, shape ``(*R, K, D)``
        Keys.
    key_table : array, real floating, shape ``(left + right + 1, D)``
        A, learned, in the dtype of `q`. All heads share it, as in the paper.
    q_positions : array, integer, shape ``(*P, Q)``
        In tokens. For `q` of shape ``(B, H, Q, D)`` pass ``(Q,)`` or ``(B, 1, Q)``.
    k_positions : array, integer, shape ``(*P, K)``
        In tokens. For `k` of shape ``(B, H, K, D)`` pass ``(K,)`` or ``(B, 1, K)``.
    left : int
        l, at least 0: the difference of positions is clipped to -l and r. The paper has l = r; Wav2Vec2-BERT has l = 64.
    right : int
        r, at least 0; 8 in Wav2Vec2-BERT.
    order : {"key_minus_query", "query_minus_key"}
        Which difference of positions is clipped.

        - ``"key_minus_query"``: The key's position minus the query's: keys that come before the query are negative. Used by
          Shaw et al.'s paper.
        - ``"query_minus_key"``: The query's position minus the key's: keys that come before the query are positive. Used by
          SpeechT5, BERT's relative_key.
    outside : {"clip", "zero"}
        What a query and a key have that are farther apart than the window.

        - ``"clip"``: The last vector of that side. Used by Shaw et al.'s paper, SpeechT5, Wav2Vec2-BERT.
        - ``"zero"``: No vector: the product of query and key alone. Used by VITS.
    terms : {"query", "query_and_key"}
        Which of the two meets the vector.

        - ``"query"``: The query alone. Used by Shaw et al.'s paper, BERT's relative_key.
        - ``"query_and_key"``: The query and the key, each in a term of its own. Used by relative_key_query.

    Returns
    -------
    array, shape ``(*R, Q, K)``
        Unscaled, in the dtype of `q`. The paper then divides by sqrt(D).

    Raises
    ------
    ValueError
        If the table is not 2-D with ``left + right + 1`` rows, an array is not real floating, positions are not integers, have
        no axis or do not fit the shape of `q`, or `order`, `outside` or `terms` is unknown.

    Notes
    -----
    BERT's kin of transformers 4 with ``position_embedding_type`` "relative_key" or "relative_key_query" have a row for each
    distance between P = ``max_position_embeddings`` tokens: ``left = right = P - 1``, and "query_minus_key". Longer texts raise
    an IndexError there. With a cache, version 4.57.1 gives each query the last key's position (modeling_bert.py:279), which is
    wrong for more than one query. Version 5 has removed both.

    NEZHA's table is not learned, and serves keys and values: ``sinusoidal`` of the rows' numbers, 0 to left + right, with
    ``layout="interleaved"``. So the row of distance 0 has the angles of position `left`.

    Inkling's relative logits are the second term alone, of a projection of the layer's input in place of the query, which is
    not scaled: keys of zeros, `key_table` the transposed bank, left = 0, right = extent - 1, "query_minus_key" and "zero". Keys
    after the query, or as far as the extent, get 0 and not minus infinity.

    Examples
    --------
    >>> import numpy as np
    >>> q, k, table = np.asarray([[1.0]]), np.asarray([[2.0], [3.0]]), np.asarray([[10.0], [20.0], [30.0]])
    >>> places = np.asarray([0]), np.asarray([0, 1])
    >>> shaw_scores(q, k, table, *places, left=1, right=1, order="key_minus_query").tolist()
    [[22.0, 33.0]]
    """
    xp = library("shaw_scores", q=q, k=k, key_table=key_table)
    check_real("shaw_scores", q=q, k=k, key_table=key_table)
    check_word("shaw_scores", "terms", terms, TERMS)
    queries, keys, table = widened(q, k, key_table)
    vectors = vectors_of("shaw_scores", "q", q, table, q_positions, k_positions, left, right, order, outside)
    scores = matmul(queries, xp.matrix_transpose(keys))
    relative = matmul(queries[..., :, None, :], xp.matrix_transpose(vectors))[..., 0, :]
    if terms == "query":
        return cast(scores + relative, q.dtype)
    return cast(scores + relative + with_keys(keys, vectors), q.dtype)


@part()
def with_keys(keys: Array, vectors: Array, /) -> Array:
    """Return the product of each key, (..., K, D), with its vector of every query, (..., Q, K, D): (..., Q, K)."""
    return matmul(vectors[..., None, :], keys[..., None, :, :, None])[..., 0, 0]
