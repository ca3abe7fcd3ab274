"""Log-n attention: queries are scaled by the logarithm of the number of keys they see. Source: Su, kexue.fm/archives/8823."""

from posref.core.arrays import DType, beside, cast, constants, namespace, result_dtype, whole, wide
from posref.core.checks import check_flag, check_integer
from posref.spec import Axes, Flag, Integer, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Log-n attention scaling",
    idea=(
        "With more keys, the softmax spreads its weight more thinly. Log-n scaling multiplies a query by the logarithm of its "
        "position, divided by the logarithm of the training length. So attention blurs less in a text that is longer than "
        "those of training."
    ),
    family="extension",
    source="kexue.fm/archives/8823",
    models=("Qwen-7B and 14B (1)", "ReRoPE", "Grok-2"),
    domains={"original_length": Integer(2, usual=8192), "offset": Integer(0, usual=2), "at_least_one": Flag()},
    arrays={"positions": Axes("*P", "integer")},
    result="*P",
    rows="*P",
    invariants=("decode",),
    read={
        "SGLang": "sglang 0.5.23, sglang/kernels/ops/attention/decode_attention.py:300-304",
        "fastllm's Qwen": "ztxz16/fastllm@d3aea32, src/models/qwen.cpp:50-55",
        "ReRoPE": "bojone/rerope@acfe788, rerope_patch.py:56",
        "Grok-2": "sglang 0.5.23, sglang/srt/models/grok.py:440; sglang/kernels/ops/attention/decode_attention.py:300-304",
        "Qwen-7B and 14B (1)": "paddlenlp 2.8.1, paddlenlp/transformers/qwen/modeling.py:161-162",
    },
)
def logn_scale(
    positions: ArrayOf[T], /, *, original_length: int, offset: int, at_least_one: bool, dtype: DType | None = None
) -> T:
    r"""
    Return the factor by which log-n attention multiplies every query, or its logits.

    .. math:: f_i = \frac{\ln \max(p_i + o, 1)}{\ln L}, \qquad \text{at least one: } \max(1, f_i)

    Here :math:`p_i` is the position of query i, L is `original_length` and o `offset`.

    Parameters
    ----------
    positions : array, integer, any shape
        p, positions of the queries, in tokens.
    original_length : int
        L, the training length, at least 2; 512 in Su's article, 2048 or 8192 in Qwen, 4096 in ReRoPE.
    offset : int
        o, at least 0. 1 counts the keys that a causal query sees, its own included; 0 uses the position itself.
    at_least_one : bool
        True makes the factor at least 1, so queries within L keep their logits. For models trained without the factor.
    dtype : data type, optional
        Dtype of the result. None means the library's default real dtype.

    Returns
    -------
    array, shape of `positions`
        Multiply each query by its factor. It does not matter whether this is before or after RoPE.

    Raises
    ------
    ValueError
        If positions are not integers, `original_length` or `offset` is too small, or `at_least_one` is neither True nor False.

    Notes
    -----
    Qwen (``use_logn_attn``) and ReRoPE use an offset of 1 and `at_least_one`. Grok-2 (``xai_temperature_len`` in SGLang) and
    fastllm's Qwen use an offset of 0 and `at_least_one`. Su derives the factor for training from the start, without a lower
    limit; then it is 0 at the first position. In `learned_logn_scale` every head learns its own multiple of the logarithm. In
    JAX with 32-bit integers, positions plus the offset must stay below 2**31.

    Examples
    --------
    >>> import numpy as np
    >>> logn_scale(np.asarray([0, 15, 63]), original_length=16, offset=1, at_least_one=True).tolist()
    [1.0, 1.0, 1.5]
    """
    original_length = check_integer(
        "logn_scale", "original_length", original_length, 2, " (the factor divides by its logarithm)"
    )
    offset = check_integer("logn_scale", "offset", offset, 0)
    at_least_one = check_flag("logn_scale", "at_least_one", at_least_one)
    places = whole("logn_scale", "positions", positions)
    xp, c = namespace(places), constants(namespace(places))
    dtype = result_dtype("logn_scale", places, dtype)
    work = wide(dtype, xp)
    keys = xp.maximum(places + offset, beside(1, places, places.dtype))
    scale = xp.log(cast(keys, work)) / beside(c.log(c.asarray(float(original_length), dtype=c.float64)), places, work)
    return cast(xp.maximum(scale, beside(1.0, places, work)) if at_least_one else scale, dtype)
