"""Logits of multi-head latent attention, in which only some channels rotate. Source: DeepSeek-V2, arXiv:2405.04434."""

from posref.attention.attention_logits import attention_logits
from posref.core.arrays import cast, library, wide
from posref.core.checks import check_finite, check_positions, check_real, check_rotated, check_rows, check_word
from posref.rotary.apply_rope import WORDS
from posref.rotary.rope import rope
from posref.rotary.rope_frequencies import check_scaling
from posref.scaling import Scaling
from posref.spec import Axes, Integer, OneOf, Real, Record, encoding
from posref.types import AnyArray, ArrayOf, Layout, T


@encoding(
    title="Logits of multi-head latent attention (MLA)",
    idea=(
        "DeepSeek's attention stores keys in compressed form, which rotated keys do not allow. So only a few extra channels "
        "rotate, and all heads share the rotated key. The logit is the product of the rotated channels plus the product of the "
        "others."
    ),
    family="rotary",
    source="arXiv:2405.04434, section 2.1.3",
    models=("DeepSeek-V2", "DeepSeek-V3", "Kimi K2.5"),
    domains={
        "layout": OneOf(WORDS),
        "base": Real(0, usual=(2, 1e7)),
        "scaling": Record("2*n"),
        "length": Integer(0, optional=True, usual=2**20),
        "scale": Real(0, optional=True, usual=(2**-6, 2)),
    },
    invariants=("relative", "decode"),
    arrays={
        "q_nope": Axes("*R H Q N"),
        "q_rope": Axes("*R H Q 2*n"),
        "k_nope": Axes("*R H K N"),
        "k_rope": Axes("*R K 2*n"),
        "q_positions": Axes("~*R Q", "position"),
        "k_positions": Axes("~*R K", "position"),
    },
    result="*R H Q K",
    rows="*R H Q K",
    requires=("n > 0",),
    closed=True,
    sums=True,
    rounded=("q_positions", "k_positions"),
    read={
        "DeepSeek-V2": "transformers 5.23.0, models/deepseek_v2/modeling_deepseek_v2.py:259-272",
        "DeepSeek-V3 in transformers": "transformers 5.23.0, models/deepseek_v3/modeling_deepseek_v3.py:310-346",
        "Mistral 4": "transformers 5.23.0, models/mistral4/modeling_mistral4.py:319-355",
        "LongCat-Flash": "transformers 5.23.0, models/longcat_flash/modeling_longcat_flash.py:281-317",
        "Kimi K2.5 in transformers": (
            "transformers 5.23.0, models/kimi_k25/configuration_kimi_k25.py:69, 85-86; "
            "models/deepseek_v3/modeling_deepseek_v3.py:310-346"
        ),
    },
)
def mla_logits(
    q_nope: ArrayOf[T],
    q_rope: ArrayOf[T],
    k_nope: ArrayOf[T],
    k_rope: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    layout: Layout,
    base: float,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
    scale: float | None = None,
) -> T:
    r"""
    Return the scaled products of queries and keys. Only some channels rotate, and all heads share the keys' rotated channels.

    .. math:: \ell_{hij} = \sigma \left( q^C_{hi} \cdot k^C_{hj} + R_{p_i} q^R_{hi} \cdot R_{p_j} k^R_j \right)

    .. math:: (R_p x)_u = f (x_u \cos p\theta_t - x_v \sin p\theta_t), \quad
        (R_p x)_v = f (x_v \cos p\theta_t + x_u \sin p\theta_t), \quad \theta_t = b^{-2t/D}, \quad t = 0 \dots D/2-1

    Here h is the head, and query i and key j are at positions :math:`p_i` and :math:`p_j`. Pair t is channels u and v (see
    `layout`). The factor f is 1 unless a `scaling` has one.

    Parameters
    ----------
    q_nope : array, real floating, shape ``(*R, H, Q, N)``
        q^C, the queries' channels that do not rotate.
    q_rope : array, real floating, shape ``(*R, H, Q, D)``
        q^R, the queries' channels that rotate, before the rotation. D is even.
    k_nope : array, real floating, shape ``(*R, H, K, N)``
        k^C, the keys' channels that do not rotate, for every head.
    k_rope : array, real floating, shape ``(*R, K, D)``
        k^R, the keys' channels that rotate, before the rotation. All heads share them.
    q_positions : array, integer or at least float32, shape ``(*P, Q)``
        Positions of the queries, in tokens. They have no axis of heads: for q_nope of (B, H, Q, N) pass (Q,) or (B, Q).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    k_positions : array, integer or at least float32, shape ``(*P, K)``
        Positions of the keys, in tokens, without an axis of heads: (K,) or (B, K).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair t. "interleaved" and "interleaved_to_half" give the same logits, because they reorder the
        channels of queries and keys in the same way.

        - ``"half"``: Pair t is channels t and t + D/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair t is the neighbouring channels 2t and 2t + 1, as in RoPE's paper. Used by DeepSeek-V2.
        - ``"interleaved_to_half"``: Pair t is read at channels 2t and 2t + 1, and written at t and t + D/2. Used by DeepSeek-V3
          in transformers, Kimi K2.5 in transformers, Mistral 4, LongCat-Flash.
    base : float
        b ("rope_theta" in configurations), above 0.
    scaling : record of posref.scaling, optional
        A context extension, which changes theta and f: see `rope_frequencies`. f multiplies both queries and keys.
    length : int or integer array without axes, optional
        The number of tokens in the sequence, cached ones included. Some scalings need it: see `rope_frequencies`.
    scale : float, optional
        sigma. None means ``1/sqrt(N + D)``.

    Returns
    -------
    array, shape ``(*R, H, Q, K)``
        In the dtype of `q_nope`, with one rounding.

    Raises
    ------
    ValueError
        If shapes do not fit, an array is not real floating, positions do not broadcast or are half precision, or an option is
        unknown.

    Notes
    -----
    With YaRN, models set the scale to ``g(mscale_all_dim)**2 / sqrt(N + D)``, where ``g(m) = m ln(factor) / 10 + 1`` for a
    factor above 1. Pass it as `scale`. `posref.configs.factors` returns the square as ``softmax``. YaRN's own factor,
    ``g(mscale) / g(mscale_all_dim)``, multiplies cos and sin of the rotated channels. It is 1 in DeepSeek-V2 and V3, and
    DeepSeek's own code leaves it out.

    An implementation that caches the compressed keys multiplies q^C by the matrix that expands them. The products are the same.

    Examples
    --------
    >>> import numpy as np
    >>> nope, rope = np.asarray([[[1.0, 1.0]]]), np.asarray([[[1.0, 0.0]]])
    >>> places = np.asarray([7]), np.asarray([7])
    >>> mla_logits(nope, rope, nope, rope[0], *places, layout="half", base=10000.0).tolist()
    [[[1.5]]]
    """
    xp = library("mla_logits", q_nope=q_nope, q_rope=q_rope, k_nope=k_nope, k_rope=k_rope)
    shapes = [tuple(x.shape) for x in (q_nope, q_rope, k_nope, k_rope)]
    if len(shapes[0]) < 3 or not _fit(*shapes):
        msg = (
            "mla_logits: q_nope, q_rope, k_nope and k_rope must be (*R, H, Q, N), (*R, H, Q, D), (*R, H, K, N) and (*R, K, D); "
            f"got {', '.join(map(str, shapes))}."
        )
        raise ValueError(msg)
    check_real("mla_logits", q_nope=q_nope, q_rope=q_rope, k_nope=k_nope, k_rope=k_rope)
    lead = shapes[3][:-2]
    for of, x, name, positions in (
        ("q_rope", q_rope, "q_positions", q_positions),
        ("k_rope", k_rope, "k_positions", k_positions),
    ):
        check_positions("mla_logits", name, positions)
        library("mla_logits", **{of: x, name: positions})
    check_rows("mla_logits", "q_positions", tuple(q_positions.shape), (*lead, shapes[1][-2]), of="q_rope without heads")
    check_rows("mla_logits", "k_positions", tuple(k_positions.shape), (*lead, shapes[3][-2]), of="k_rope")
    check_word("mla_logits", "layout", layout, WORDS)
    check_scaling("mla_logits", check_rotated("rope", None, k_rope.shape[-1]), base=base, scaling=scaling, length=length)
    scale = None if scale is None else check_finite("mla_logits", "scale", scale)
    work = wide(q_nope.dtype, xp)
    of_heads = q_positions if q_positions.ndim < 2 else q_positions[..., None, :]
    rotated, shared = (
        rope(cast(x, work), positions, layout=layout, base=base, scaling=scaling, length=length)
        for x, positions in ((q_rope, of_heads), (k_rope, k_positions))
    )
    shared = xp.broadcast_to(shared[..., None, :, :], (*k_nope.shape[:-1], k_rope.shape[-1]))
    last = q_nope.ndim - 1
    queries = xp.concat([cast(q_nope, work), rotated], axis=last)
    keys = xp.concat([cast(k_nope, work), shared], axis=last)
    return cast(attention_logits(queries, keys, scale=scale), q_nope.dtype)


def _fit(q_nope: tuple[int, ...], q_rope: tuple[int, ...], k_nope: tuple[int, ...], k_rope: tuple[int, ...]) -> bool:
    """Return whether the shapes of queries and keys fit each other."""
    *lead, heads, keys, width = k_nope if len(k_nope) == len(q_nope) else (None,) * len(q_nope)
    return (
        (*q_nope[:-2], q_nope[-1]) == (*lead, heads, width)
        and q_rope[:-1] == q_nope[:-1]
        and k_rope == (*lead, keys, q_rope[-1])
    )
