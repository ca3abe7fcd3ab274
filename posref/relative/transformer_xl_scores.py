"""Relative scores of Transformer-XL and its kin. Source: Dai et al., arXiv:1901.02860, section 3.3."""

from typing import Literal, get_args

from posref.absolute.sines import arranged, ladder
from posref.core.angles import cos_sin
from posref.core.arrays import Array, cast, clipped, distances, library, whole, with_axis_moved
from posref.core.checks import check_flag, check_integer, check_positive, check_real, check_rows, check_tokens, check_word
from posref.core.products import matmul
from posref.relative.shaw_table import widened
from posref.spec import Axes, Flag, Integer, OneOf, Real, encoding, part
from posref.types import ArrayOf, T

Layout = Literal["sin_cos", "interleaved"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


@encoding(
    title="Relative scores of Transformer-XL and Conformer",
    idea=(
        "A sinusoid of the distance between query and key is multiplied with a learned matrix, and gives a second key. The "
        "query is compared with the key, for content, and with that second key, for distance. Two learned vectors are added to "
        "the query, one for each."
    ),
    longer=(
        "With memory of earlier segments, Transformer-XL's effective context is 4.5 times as long as a Transformer's. "
        "Distances beyond those of training can be clamped to the largest one."
    ),
    family="relative",
    source="arXiv:1901.02860, section 3.3",
    models=("Transformer-XL", "XLNet", "Conformer", "Parakeet", "Wav2Vec2-Conformer", "Funnel", "Gemma 3n audio"),
    domains={
        "layout": OneOf(LAYOUTS),
        "base": Real(0, usual=(2, 1e6)),
        "endpoint": Flag(),
        "max_distance": Integer(1, optional=True, usual=512),
    },
    invariants=("shift invariant", "decode"),
    arrays={
        "q": Axes("*R H Q D | B H Q D", usual=(-1.0, 1.0)),
        "k": Axes("*R H K D | B H K D"),
        "r_weight": Axes("2*n H D", usual=(-1.0, 1.0)),
        "q_positions": Axes("Q | B 1 Q", "integer"),
        "k_positions": Axes("K | B 1 K", "integer"),
        "bias_u": Axes("H D", optional=True),
        "bias_v": Axes("H D", optional=True),
    },
    result="*R H Q K | B H Q K",
    rows="*R B H Q K",
    requires=("n > 0", "n > 1 or not endpoint"),
    sums=True,
    read={
        "Transformer-XL": "kimiyoung/transformer-xl@44781ed, pytorch/mem_transformer.py:21-31",
        "XLNet": "transformers 5.23.0, models/xlnet/modeling_xlnet.py:927-934",
        "Funnel": "transformers 5.23.0, models/funnel/modeling_funnel.py:137-149",
        "Gemma 3n audio": "transformers 5.23.0, models/gemma3n/modeling_gemma3n.py:166-177",
        "Gemma 4 audio": "transformers 5.23.0, models/gemma4/modeling_gemma4.py:240-253",
        "Conformer in NeMo": (
            "nemo_toolkit 3.0.0, nemo/collections/asr/parts/submodules/multi_head_attention.py:1015-1024, 1067-1075"
        ),
        "Conformer in ESPnet": "espnet 202511, espnet/nets/pytorch_backend/transformer/embedding.py:287-317",
        "Parakeet": "transformers 5.23.0, models/parakeet/modeling_parakeet.py:82-94",
        "Wav2Vec2-Conformer": "transformers 5.23.0, models/wav2vec2_conformer/modeling_wav2vec2_conformer.py:186-204",
        "FastSpeech2-Conformer": "transformers 5.23.0, models/fastspeech2_conformer/modeling_fastspeech2_conformer.py:734-752",
    },
)
def transformer_xl_scores(
    q: ArrayOf[T],
    k: ArrayOf[T],
    r_weight: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    layout: Layout,
    base: float = 10000.0,
    endpoint: bool = False,
    max_distance: int | None = None,
    bias_u: ArrayOf[T] | None = None,
    bias_v: ArrayOf[T] | None = None,
) -> T:
    r"""
    Return query-key products plus products of the query with a projected sinusoid of its distance from the key.

    .. math:: e_{ij} = (q_i + u_h) \cdot k_j + (q_i + v_h) \cdot W_h^\top R(c(p_i - p_j)), \qquad
        c(n) = \min(\max(n, -l), l)

    where q_i and k_j are query i and key j of head h, p_i and p_j their positions, W_h the weight of that head, (d, D), and
    R(n) the sinusoid of n, of width d:

    .. math:: R(n)_m = \sin(n \, b^{-2m/d}), \qquad R(n)_{d/2+m} = \cos(n \, b^{-2m/d}), \qquad m = 0 \dots d/2-1

    This is `layout` "sin_cos"; "interleaved" has sine m in channel 2m and cosine m in 2m + 1. With `endpoint` the exponent is
    -m/(d/2 - 1). l is `max_distance`; without it c(n) = n. b is `base`.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, H, Q, D)``
        Queries.
    k : array, real floating, shape ``(*R, H, K, D)``
        Keys.
    r_weight : array, real floating, shape ``(d, H, D)``
        W, learned, in the dtype of `q`; d is even. From torch.nn.Linear: reshape its weight (H D, d) to (H, D, d), then move
        the last axis to the front. It has no bias.
    q_positions : array, integer, shape ``(*P, Q)``
        In tokens. For `q` of shape ``(B, H, Q, D)`` pass ``(Q,)`` or ``(B, 1, Q)``.
    k_positions : array, integer, shape ``(*P, K)``
        In tokens. For `k` of shape ``(B, H, K, D)`` pass ``(K,)`` or ``(B, 1, K)``.
    layout : {"sin_cos", "interleaved"}
        The order of the channels of R.

        - ``"sin_cos"``: All sines before all cosines. Used by Transformer-XL, XLNet, Funnel, Gemma 3n audio,
          Gemma 4 audio.
        - ``"interleaved"``: Each sine before its cosine. Used by Conformer in NeMo, Conformer in ESPnet, Parakeet,
          Wav2Vec2-Conformer, FastSpeech2-Conformer.
    base : float
        b, above 0. 10000 in all of these.
    endpoint : bool
        Whether the smallest frequency is 1/b. True in Gemma 3n and 4 audio.
    max_distance : int, optional
        l, at least 1: the largest distance. Transformer-XL and XLNet have it (clamp_len). None means no limit.
    bias_u : array, real floating, optional, shape ``(H, D)``
        u, learned, for content: r_w_bias of Transformer-XL and XLNet, pos_bias_u of Conformer. None means 0, as in Gemma.
    bias_v : array, real floating, optional, shape ``(H, D)``
        v, learned, for distance: r_r_bias, pos_bias_v. None means 0.

    Returns
    -------
    array, shape ``(*R, H, Q, K)``
        Unscaled, in the dtype of `q`. Divide both terms by sqrt(D), then mask. Gemma scales its queries and keys instead.

    Raises
    ------
    ValueError
        If an array is not real floating or does not fit the shape of `q`, d is odd, positions are not integers or have no axis,
        or an option is out of its range.

    Notes
    -----
    The queries are the last ones: with memory or a cache of M tokens, q_positions are M, ..., K - 1 and k_positions 0, ...,
    K - 1. Libraries make R for each distance once, multiply, and move each row to its keys (`relative_shift`). The result is
    the same where they have every distance: Conformer needs 2T - 1 of them for T frames; "legacy" classes of ESPnet have T,
    so keys after the query get other keys' numbers. Transformer-XL clamps distances above l alone; a causal mask hides the
    rest. In the half of a batch that XLNet reads backwards (``bi_data``), distances have the other sign: negate both positions
    there. XLNet's term for segments, (q + r_s_bias) . seg_embed, is not part of this. Funnel with
    ``attention_type="factorized"`` multiplies sines and cosines of both positions instead, by the addition theorem. NeMo and
    Parakeet round R to the dtype of the model.

    Examples
    --------
    >>> import numpy as np
    >>> q, k = np.asarray([[[1.0]]]), np.asarray([[[2.0], [3.0]]])
    >>> weight = np.asarray([[[0.0]], [[1.0]]])  # of the sine, of the cosine
    >>> places = np.asarray([1]), np.asarray([0, 1])
    >>> transformer_xl_scores(q, k, weight, *places, layout="sin_cos").round(4).tolist()
    [[[2.5403, 4.0]]]
    """
    name = "transformer_xl_scores"
    check_word(name, "layout", layout, LAYOUTS)
    check_positive(name, "base", base)
    endpoint = check_flag(name, "endpoint", endpoint)
    max_distance = None if max_distance is None else check_integer(name, "max_distance", max_distance, 1)
    xp = library(name, q=q, k=k, r_weight=r_weight, q_positions=q_positions, k_positions=k_positions)
    _check(name, q, k, r_weight, bias_u, bias_v, endpoint)
    check_tokens(name, q_positions=q_positions, k_positions=k_positions)
    check_rows(name, "q_positions", tuple(q_positions.shape), tuple(q.shape[:-1]), of="q")
    check_rows(name, "k_positions", tuple(k_positions.shape), tuple(k.shape[:-1]), of="k")
    queries, keys, weight = widened(q, k, r_weight)
    for_content = queries if bias_u is None else queries + cast(bias_u, queries.dtype)[:, None, :]
    for_distance = queries if bias_v is None else queries + cast(bias_v, queries.dtype)[:, None, :]
    apart = xl_distances(
        whole(name, "q_positions", q_positions), whole(name, "k_positions", k_positions), max_distance=max_distance
    )
    pairs = r_weight.shape[0] // 2
    cos, sin = cos_sin(apart, ladder(xp, pairs, pairs - 1 if endpoint else pairs, base), dtype=queries.dtype)
    waves = arranged(sin, cos, layout)
    projected = matmul(for_distance, with_axis_moved(weight, 0, -1))  # (*R, H, Q, d)
    relative = matmul(projected[..., None, :], xp.matrix_transpose(waves))[..., 0, :]
    return cast(matmul(for_content, xp.matrix_transpose(keys)) + relative, q.dtype)


@part()
def xl_distances(q_positions: Array, k_positions: Array, /, *, max_distance: int | None) -> Array:
    """Return query minus key position for every query and key, limited to `max_distance` on both sides."""
    apart = distances(q_positions, k_positions)
    return apart if max_distance is None else clipped(apart, -max_distance, max_distance)


def _check(
    function: str, q: Array, k: Array, r_weight: Array, bias_u: Array | None, bias_v: Array | None, endpoint: bool
) -> None:
    """Raise if arrays of reals do not fit together."""
    check_real(function, q=q, k=k, r_weight=r_weight)
    if q.ndim < 3 or k.ndim < 3 or q.shape[-1] != k.shape[-1] or q.shape[:-2] != k.shape[:-2]:
        msg = f"{function}: q and k must be (..., H, Q, D) and (..., H, K, D); got {tuple(q.shape)} and {tuple(k.shape)}."
        raise ValueError(msg)
    heads, lanes = q.shape[-3], q.shape[-1]
    least = 4 if endpoint else 2
    if r_weight.ndim != 3 or r_weight.shape[1:] != (heads, lanes) or r_weight.shape[0] % 2 or r_weight.shape[0] < least:
        need = f"must be (d, H, D) with an even d of at least {least}, {heads} heads and D = {lanes}"
        msg = f"{function}: r_weight {need}; got {tuple(r_weight.shape)}."
        raise ValueError(msg)
    for argument, bias in (("bias_u", bias_u), ("bias_v", bias_v)):
        if bias is not None:
            library(function, q=q, **{argument: bias})
            check_real(function, **{argument: bias})
            if tuple(bias.shape) != (heads, lanes):
                msg = f"{function}: {argument} must be (H, D), {(heads, lanes)}; got {tuple(bias.shape)}."
                raise ValueError(msg)
