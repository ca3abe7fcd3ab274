"""xPos, rotary position embedding with an exponential decay. Source: Sun et al., arXiv:2212.10554."""

from posref.core.arrays import library, number_system, wide
from posref.core.checks import check_lanes, check_positions, check_rotated, check_rows, check_word
from posref.rotary.apply_rope import WORDS, apply_rope
from posref.rotary.rope_frequencies import check_scaling, rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.rotary.xpos_scales import NEAR, ROLES, Role, check_scales, xpos_scales
from posref.spec import Axes, Integer, OneOf, Real, encoding
from posref.types import ArrayOf, Layout, T


@encoding(
    title="Extrapolatable position embedding (xPos)",
    idea=(
        "xPos rotates as RoPE does and also scales the channel pairs, so that the product of a query and a key fades with the "
        "distance, in fast pairs first. With RoPE alone it swings up and down. It is for causal attention."
    ),
    longer="Perplexity stays low beyond the training length, together with attention in blocks.",
    family="rotary",
    source="arXiv:2212.10554",
    models=("LEX",),
    domains={
        "role": OneOf(ROLES),
        "layout": OneOf(WORDS),
        "base": Real(0, usual=(2, 1e7)),
        "centre": Integer(0, usual=4096),
        "rotary_dim": Integer(2, step=2, optional=True, usual=64),
        "scale_base": Real(0, usual=(64, 2**20)),
        "gamma": Real(0, usual=(0.25, 64)),
    },
    invariants=("relative", "centre cancels", "tail unchanged", "decode"),
    arrays={"x": Axes("D | *R T D | B T H D"), "positions": Axes(" | ~*R ~T | T 1", "position", *NEAR)},
    result="=x",
    rows="*R B H T",
    requires=("2 <= (rotary_dim or D) <= D", "(rotary_dim or D) % 2 == 0", "H > 1"),
    read={
        "torchscale": "microsoft/torchscale@4d1e0e8, torchscale/component/xpos_relative_position.py:16-20",
        "x-transformers": "lucidrains/x-transformers@9252ed7, x_transformers/x_transformers.py:854-858",
        "rotary-embedding-torch": (
            "lucidrains/rotary-embedding-torch@8bb4643, rotary_embedding_torch/rotary_embedding_torch.py:35-39"
        ),
        "LEX": "microsoft/torchscale@4d1e0e8, torchscale/component/xpos_relative_position.py:38-64",
    },
)
def xpos(
    x: ArrayOf[T],
    positions: ArrayOf[T],
    /,
    *,
    role: Role,
    layout: Layout,
    base: float,
    centre: int,
    rotary_dim: int | None = None,
    scale_base: float = 512.0,
    gamma: float = 0.4,
) -> T:
    r"""
    Return `x` rotated as by RoPE and scaled: queries decay with their position, keys grow with it.

    .. math:: (X_p x)_u = s_{p,i} (x_u \cos p\theta_i - x_v \sin p\theta_i), \qquad
        (X_p x)_v = s_{p,i} (x_v \cos p\theta_i + x_u \sin p\theta_i), \qquad \theta_i = b^{-2i/d}

    .. math:: s_{p,i} = \zeta_i^{(p - c)/S} \text{ for queries}, \quad \zeta_i^{(c - p)/S} \text{ for keys}, \qquad
        \zeta_i = \frac{2i/d + \gamma}{1 + \gamma}, \qquad i = 0 \dots d/2-1

    Here p is the position, c the centre and S the scale base. Pair i is channels u and v (see `layout`). So
    :math:`\langle X_p q, X_n k \rangle` depends only on p - n, not on the centre. The term of pair i decays as
    :math:`\zeta_i^{(p-n)/S}` if p > n, and grows if p < n. Use xPos for causal attention, not in a bidirectional encoder.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens. For x of (B, H, T, D) pass (T,) or (B, 1, T).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    role : {"query", "key"}
        What x holds.

        - ``"query"``: The vectors are queries, whose factors fall as the position grows.
        - ``"key"``: The vectors are keys, whose factors grow with the position, so that only the distance counts.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair i.

        - ``"half"``: Pair i is channels i and i + d/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair i is the neighbouring channels 2i and 2i + 1, as in RoPE's paper. Used by torchscale,
          x-transformers, rotary-embedding-torch.
        - ``"interleaved_to_half"``: Pair i is read at channels 2i and 2i + 1, and written at i and i + d/2.
    base : float
        b, the base of the frequencies, above 0; 10000 in torchscale.
    centre : int
        c, the position whose scales are 1, at least 0. Use the same for queries and keys. `xpos_scales` says how libraries
        choose it, and how far positions can be from it.
    rotary_dim : int, optional
        d, the number of leading channels that are rotated and scaled, even. None means all D.
    scale_base : float
        S, in tokens, above 0.
    gamma : float
        Above 0. A smaller gamma makes the first pairs decay more.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`; channels from `rotary_dim` on are unchanged.

    Raises
    ------
    ValueError
        If `rotary_dim` is odd or larger than D, positions do not broadcast or are half precision, `centre` is negative, `base`,
        `scale_base` or `gamma` is not positive, or an option is unknown.

    Notes
    -----
    The paper has no context extension. For position interpolation, rotary-embedding-torch divides the positions in the rotation
    and in the decay, x-transformers only those in the rotation.

    Examples
    --------
    >>> import numpy as np
    >>> options = {"layout": "half", "base": 10000.0, "centre": 0, "gamma": 1.0}
    >>> xpos(np.asarray([[1.0, 0.0]]), np.asarray([512]), role="key", **options).round(4).tolist()
    [[-1.9937, 0.159]]
    """
    check_word("xpos", "layout", layout, WORDS)
    xp = library("xpos", x=x, positions=positions)
    check_lanes("xpos", "x", x)
    check_positions("xpos", "positions", positions)
    check_rows("xpos", "positions", tuple(positions.shape), tuple(x.shape[:-1]))
    dim = check_rotated("xpos", rotary_dim, x.shape[-1])
    check_scaling("xpos", dim, base=base)
    centre, scale_base, gamma = check_scales("xpos", role, centre, scale_base, gamma)
    inv_freq, factor = rope_frequencies(dim, base=base, xp=number_system(xp))
    work = wide(x.dtype, xp)
    cos, sin = rope_table(positions, inv_freq, attention_factor=factor, dtype=work)
    scales = xpos_scales(positions, dim, role=role, centre=centre, scale_base=scale_base, gamma=gamma, dtype=work)
    return apply_rope(x, cos * scales, sin * scales, layout=layout)
