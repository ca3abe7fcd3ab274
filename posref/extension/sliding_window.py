"""Sliding windows. Sources: Beltagy et al., arXiv:2004.05150, section 3.1; Jiang et al., arXiv:2310.06825, section 2."""

from typing import Literal, get_args

from posref.core.arrays import Array, distances, library, whole
from posref.core.checks import check_integer, check_tokens, check_word
from posref.spec import Axes, Domain, Integer, OneOf, encoding
from posref.types import ArrayOf, T

Counting = Literal["with_query", "without_query"]
COUNTING: tuple[Counting, ...] = get_args(Counting)
Sides = Literal["causal", "both"]
SIDES: tuple[Sides, ...] = get_args(Sides)
WINDOW: dict[str, Domain] = {"window": Integer(0, usual=64), "counting": OneOf(COUNTING)}
PLACES = {"q_positions": Axes("~*B Q", "integer"), "k_positions": Axes("*B K", "integer")}
COUNTED = ("window >= 1 or counting == 'without_query'",)


@encoding(
    title="Sliding window attention",
    idea=(
        "A query sees only the keys near it, say the last 4096 tokens. Then cost and memory no longer grow with every token of "
        "a long text. Whether a window of 4096 counts the query itself differs between libraries."
    ),
    family="extension",
    source="arXiv:2004.05150, section 3.1",
    models=("Longformer", "Mistral-7B", "Gemma 2 and 3", "gpt-oss", "ModernBERT", "MiMo-V2-Flash"),
    domains={**WINDOW, "sides": OneOf(SIDES)},
    arrays=PLACES,
    result="*B Q K",
    rows="*B Q K",
    requires=COUNTED,
    invariants=("shift invariant", "decode"),
    returns="mask",
    read={
        "transformers": "transformers 5.23.0, masking_utils.py:88-97",
        "gpt-oss": "openai/gpt-oss@7b58334, gpt_oss/torch/model.py:161-165",
        "Gemma": ("transformers 5.23.0, models/gemma3/modeling_gemma3.py:324; transformers 5.23.0, masking_utils.py:88-97"),
        "FlashAttention's window_size": "Dao-AILab/flash-attention@0251105a, csrc/flash_attn/src/mask.h:53",
        "Mistral's first code": "mistralai/mistral-inference@c18d5b9, one_file_ref.py:259-261",
        "ModernBERT": (
            "transformers 5.23.0, models/modernbert/modeling_modernbert.py:240-242; transformers 5.23.0, "
            "masking_utils.py:137-147"
        ),
        "vLLM": "vllm 0.33.0, v1/attention/backends/flash_attn.py:1082-1087",
        "SGLang's sliding_window_size": (
            "sglang 0.5.23, sglang/srt/layers/attention/flashattention_backend.py:1555-1570; "
            "sglang/srt/models/gemma3_causal.py:62-65"
        ),
        "axlearn's sliding_window_size": "apple/axlearn@34aed43, axlearn/common/attention_bias.py:771-790",
        "Gemma 2 and 3": "transformers 5.23.0, models/gemma2/modeling_gemma2.py:238, 432; models/gemma3/modeling_gemma3.py:324",
        "MiMo-V2-Flash": "transformers 5.23.0, models/mimo_v2_flash/modeling_mimo_v2_flash.py:358",
        "Longformer": "transformers 5.23.0, models/longformer/modeling_longformer.py:724-803",
        "Mistral-7B": "mistralai/mistral-inference@c18d5b9, one_file_ref.py:259-261",
    },
)
def sliding_window(q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, window: int, counting: Counting, sides: Sides) -> T:
    r"""
    Return a mask that lets every query attend to the keys near it.

    .. math:: M_{ij} = [\, 0 \le p_i - p_j \le r \,] \text{ (causal)}, \qquad [\, |p_i - p_j| \le r \,] \text{ (both sides)}

    Here :math:`p_i` is the position of query i, :math:`p_j` the position of key j, and r is `window` - 1 for
    ``counting="with_query"``, else `window`. Brackets are True where the statement holds.

    Parameters
    ----------
    q_positions : array, integer, shape ``(*B, Q)``
        In tokens. For queries of ``(B, H, Q, D)`` pass ``(Q,)`` or ``(B, 1, Q)``.
    k_positions : array, integer, shape ``(*B, K)``
        In tokens. For keys of ``(B, H, K, D)`` pass ``(K,)`` or ``(B, 1, K)``.
    window : int
        The size in tokens (on each side if `sides` is "both"). At least 1 with "with_query", at least 0 with "without_query".
    counting : {"with_query", "without_query"}
        Whether the window counts the query's own key.

        - ``"with_query"``: A window of W tokens is the query's own and the W - 1 before it. Used by transformers, vLLM,
          gpt-oss, Gemma.
        - ``"without_query"``: A window of W tokens is the W before the query, plus the query's own. Used by Mistral's first
          code, FlashAttention's window_size, SGLang's sliding_window_size, axlearn's sliding_window_size, ModernBERT.
    sides : {"causal", "both"}
        Which keys a query sees.

        - ``"causal"``: A query sees only keys at or before its own position.
        - ``"both"``: A query sees keys before and after it. Used by ModernBERT.

    Returns
    -------
    array of booleans, shape ``(*B, Q, K)``
        True where a query may attend to a key: the `mask` of `attention`.

    Raises
    ------
    ValueError
        If positions are not integers, `window` is too small, or a word is unknown.

    Notes
    -----
    ``sliding_window`` in a model's configuration counts the query in transformers, vLLM, gpt-oss and Gemma. SGLang takes 1 from
    it (gemma3_causal.py), because its own ``sliding_window_size`` does not count the query. Nor do Mistral's own first code
    (``triu(diagonal=-window)``), FlashAttention's ``window_size`` and axlearn's ``sliding_window_size``, nor ModernBERT on each
    side. A `window` of W "with_query" equals one of W - 1 "without_query".

    Examples
    --------
    >>> import numpy as np
    >>> places = np.asarray([4]), np.asarray([1, 2, 3, 4, 5])
    >>> sliding_window(*places, window=2, counting="with_query", sides="causal").tolist()
    [[False, False, True, True, False]]
    """
    check_word("sliding_window", "sides", sides, SIDES)
    farthest = reach("sliding_window", window, counting)
    apart = distances(*of_tokens("sliding_window", q_positions, k_positions))
    return (apart <= farthest) & (apart >= (0 if sides == "causal" else -farthest))


def reach(function: str, window: int, counting: Counting) -> int:
    """Return r, the largest distance within a window."""
    check_word(function, "counting", counting, COUNTING)
    counts = counting == "with_query"
    window = check_integer(function, "window", window, int(counts), " (it counts the query)" if counts else "")
    return window - int(counts)


def of_tokens(function: str, q_positions: Array, k_positions: Array) -> tuple[Array, Array]:
    """Return integer positions of queries and keys in the indexing dtype. Raise if they are not integers."""
    check_tokens(function, q_positions=q_positions, k_positions=k_positions)
    library(function, q_positions=q_positions, k_positions=k_positions)
    return whole(function, "q_positions", q_positions), whole(function, "k_positions", k_positions)
