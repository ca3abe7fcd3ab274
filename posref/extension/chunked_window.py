"""Attention within chunks. Source: Meta's llama-models, models/llama4/model.py (attention_chunk_size)."""

from posref.core.arrays import distances
from posref.core.checks import check_integer, check_word
from posref.extension.sliding_window import PLACES, SIDES, Sides, of_tokens
from posref.spec import Integer, OneOf, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Chunked attention",
    idea=(
        "The text is cut into chunks of, say, 8192 tokens, and a query sees only the keys of its own chunk. Unlike with a "
        "sliding window, the first token of a chunk sees nothing before it."
    ),
    family="extension",
    source="llama-models, models/llama4/model.py",
    models=("Llama 4",),
    domains={"chunk_size": Integer(1, usual=64), "sides": OneOf(SIDES)},
    arrays=PLACES,
    result="*B Q K",
    rows="*B Q K",
    invariants=("decode",),
    returns="mask",
    read={"Llama 4": "meta-llama/llama-models@a9c89c4, models/llama4/model.py:429-440"},
)
def chunked_window(q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, chunk_size: int, sides: Sides) -> T:
    r"""
    Return a mask that lets every query attend to the keys of its own chunk.

    .. math:: M_{ij} = [\, \lfloor p_i / c \rfloor = \lfloor p_j / c \rfloor \,], \qquad
        \text{causal: and } p_j \le p_i

    Here :math:`p_i` is the position of query i, :math:`p_j` the position of key j and c the chunk size. Brackets are True
    where the statement holds.

    Parameters
    ----------
    q_positions : array, integer, shape ``(*B, Q)``
        In tokens from the start of the text, where the first chunk begins. Do not pass places in a padded row or in a cache.
    k_positions : array, integer, shape ``(*B, K)``
        In tokens, counted in the same way.
    chunk_size : int
        c, tokens in a chunk; Llama 4 has 8192.
    sides : {"causal", "both"}
        Which keys of the chunk a query sees.

        - ``"causal"``: A query sees only keys at or before its own position. Used by Llama 4.
        - ``"both"``: A query sees keys before and after it, all of the chunk.

    Returns
    -------
    array of booleans, shape ``(*B, Q, K)``
        True where a query may attend to a key: the `mask` of `attention`.

    Raises
    ------
    ValueError
        If positions are not integers, `chunk_size` is less than 1, or `sides` is unknown.

    Notes
    -----
    Unlike in a sliding window, the number of keys depends on the query's place in its chunk. With "causal", the first query of
    a chunk sees only its own key.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.asarray([4, 5]), np.asarray([2, 3, 4, 5])
    >>> chunked_window(*places, chunk_size=4, sides="causal").tolist()
    [[False, False, True, False], [False, False, True, True]]
    """
    check_word("chunked_window", "sides", sides, SIDES)
    chunk_size = check_integer("chunked_window", "chunk_size", chunk_size, 1)
    q, k = of_tokens("chunked_window", q_positions, k_positions)
    same = distances(q // chunk_size, k // chunk_size) == 0
    return same & (distances(q, k) >= 0) if sides == "causal" else same
