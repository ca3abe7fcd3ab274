"""ALiBi: attention with linear biases. Source: Press et al., arXiv:2108.12409, section 3."""

from typing import Literal, get_args

from posref.bias.alibi_slopes import alibi_slopes, check_shard
from posref.core.arrays import (
    Array,
    DType,
    beside,
    cast,
    common_shape,
    constants,
    distances,
    library,
    namespace,
    result_dtype,
    wide,
)
from posref.core.checks import check_flag, check_integer, check_positions, check_positive, check_tokens, check_word
from posref.core.strips import in_strips
from posref.spec import Axes, Flag, Integer, OneOf, Real, encoding, part
from posref.types import ArrayOf, T

Form = Literal["distance", "causal", "key"]
FORMS: tuple[Form, ...] = get_args(Form)


@encoding(
    title="Attention with linear biases (ALiBi)",
    idea=(
        "Every attention head lowers the logit of a key by a fixed amount per token of distance: a key 10 tokens back loses "
        "ten times the head's slope. So near keys are preferred. Nothing is learned, and texts may be longer than in training."
    ),
    longer="Perplexity stays low at several times the training length.",
    family="bias",
    source="arXiv:2108.12409, section 3",
    models=("BLOOM", "MPT", "Baichuan-13B", "Step-1"),
    domains={
        "heads": Integer(1),
        "form": OneOf(FORMS),
        "max_bias": Real(0),
        "root": Flag(),
        "first": Integer(0, usual=8),
        "count": Integer(1, optional=True, usual=8),
    },
    requires=("first < heads", "count is None or first+count <= heads", "not root or form == 'causal'"),
    arrays={"q_positions": Axes("~*B Q", "position"), "k_positions": Axes("*B K", "position")},
    result="*B (heads-first,count)[count!=None] (Q,1)[form=='key'] K",
    rows="*B Q K",
    invariants=("shift invariant", "decode"),
    read={
        "BLOOM": "transformers 5.23.0, models/bloom/modeling_bloom.py:61-89",
        "MPT": "transformers 5.23.0, models/mpt/modeling_mpt.py:42-62",
        "FlashAttention with causal": "Dao-AILab/flash-attention@0251105a, csrc/flash_attn/src/alibi.h:39-51",
        "Step-1": "vllm 0.33.0, v1/attention/ops/triton_attention_helpers.py:432-438",
        "FlashAttention without causal": "Dao-AILab/flash-attention@0251105a, csrc/flash_attn/src/alibi.h:52-70",
        "vLLM": "vllm 0.33.0, model_executor/models/bloom.py:119-124; model_executor/models/step1.py:129-132",
    },
)
@in_strips
def alibi(
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    heads: int,
    form: Form,
    max_bias: float = 8,
    root: bool = False,
    first: int = 0,
    count: int | None = None,
    dtype: DType | None = None,
) -> T:
    r"""
    Return the bias that ALiBi adds to the attention logits of every head, or of the heads of one shard.

    .. math:: B_{h,i,j} = -m_h \, |p_i - p_j|, \qquad m_h = 2^{-\beta h/H}, \; h = 1 \dots H

    where p_i is the position of query i, p_j the position of key j, and m_h the slope of head h, with beta = `max_bias`. These
    slopes hold if H is a power of two. Otherwise let P be the largest power of two below H. The first P slopes are
    :math:`2^{-\beta h/P}`, h = 1 ... P, and the others :math:`2^{-\beta(2n-1)/(2P)}`, n = 1 ... H - P (`alibi_slopes`). With
    `root`

    .. math:: B_{h,i,j} = -m_h \, \sqrt{\max(p_i - p_j, 0)}

    Parameters
    ----------
    q_positions : array, integer or at least float32, shape ``(*B, Q)``
        Positions of the queries, in tokens.
    k_positions : array, integer or at least float32, shape ``(*B, K)``
        Positions of the keys, in tokens.
    heads : int
        H, the number of heads in the whole model (not in one shard), at least 1.
    form : {"distance", "causal", "key"}
        What the bias of a key is. FlashAttention takes the slopes from `alibi_slopes`. With ``causal=True`` it adds "key", else
        "distance" with queries at positions K - Q, ..., K - 1.

        - ``"distance"``: The bias is minus the slope times the distance, on both sides of the query, as in the formula. Used by
          FlashAttention without causal.
        - ``"causal"``: The bias is minus the slope times query minus key, -m_h (p_i - p_j), so that keys after the query get a
          positive one. Used by Step-1.
        - ``"key"``: The bias is the slope times the key's position, m_h p_j, which equals the others only after a causal
          softmax. Used by BLOOM, MPT, FlashAttention with causal.
    max_bias : float
        beta, above 0; 8 in the paper. MPT calls it ``alibi_bias_max``, GGUF files ``attention.max_alibi_bias``.
    root : bool
        Whether the bias grows with the square root of the distance, as in Step-1; 0 for keys after the query. Then `form` is
        "causal".
    first : int
        The first head of the shard, from 0. With tensor parallelism over n ranks, rank r has the heads from r H / n on.
    count : int, optional
        How many heads the shard has. None means all from `first` on.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*B, count, Q, K)``, or ``(*B, count, 1, K)`` for ``form="key"``; ``count`` is H without shards
        In logit units. Add it after the 1/sqrt(D) scale, as BLOOM and MPT do (Falcon adds it before).

    Raises
    ------
    ValueError
        If `heads` is less than 1, `form` is unknown, or positions are half precision or have no axis. If `max_bias` is not
        positive, `root` is given with another form than "causal", or a head of the shard is not one of the model's.

    Notes
    -----
    vLLM 0.33.0 takes a shard's slopes from those of the whole model (model_executor/models/bloom.py:119-124, step1.py:129-132).
    transformers 5.23.0 has `max_bias` in MPT's function of the bias, but its model leaves it at 8 (modeling_mpt.py:42, 317).

    Examples
    --------
    >>> import numpy as np
    >>> alibi(np.asarray([3]), np.asarray([0, 1, 2]), heads=8, form="distance")[0].tolist()
    [[-1.5, -1.0, -0.5]]
    """
    name = "alibi"
    check_word(name, "form", form, FORMS)
    check_positions(name, "q_positions", q_positions)
    check_positions(name, "k_positions", k_positions)
    check_tokens(name, q_positions=q_positions, k_positions=k_positions)
    xp = library(name, q_positions=q_positions, k_positions=k_positions)
    dtype = result_dtype(name, q_positions, dtype)
    heads = check_integer(name, "heads", heads, 1)
    max_bias = check_positive(name, "max_bias", max_bias)
    first, count = check_shard(name, heads, first, count)
    if check_flag(name, "root", root) and form != "causal":
        msg = f"{name}: root=True needs form='causal', as Step-1 has it; got form={form!r}."
        raise ValueError(msg)
    slopes = alibi_slopes(heads, max_bias=max_bias, first=first, count=count, xp=xp if constants(xp) is xp else None)
    return alibi_product(q_positions, k_positions, slopes, form=form, dtype=dtype, root=root)


@part()
def alibi_product(q_positions: Array, k_positions: Array, slopes: Array, /, *, form: str, dtype: DType, root: bool) -> Array:
    """Return the products of slopes and distances."""
    xp = namespace(q_positions, k_positions)
    work = wide(dtype, xp)  # the product in float32 or wider: one rounding
    slopes = beside(slopes, q_positions, work)[:, None, None]
    if form == "key":
        batch = common_shape(tuple(q_positions.shape[:-1]), tuple(k_positions.shape[:-1]))
        keys = xp.broadcast_to(cast(k_positions, work), (*batch, k_positions.shape[-1]))
        return cast(keys[..., None, None, :] * slopes, dtype)
    apart = distances(q_positions, k_positions)
    apart = xp.abs(apart) if form == "distance" else apart
    if root:
        apart = xp.sqrt(cast(xp.maximum(apart, beside(0, apart, apart.dtype)), work))
    return cast(cast(apart, work)[..., None, :, :] * -slopes, dtype)
