"""RMS normalization and M-RoPE in one operation, as in fused kernels. Source: transformers 5.23, modeling_qwen3_vl.py."""

from collections.abc import Sequence
from typing import Literal

from posref.core.arrays import library, number_system, wide
from posref.core.checks import check_coordinates, check_integers, check_lanes, check_positions, check_word
from posref.rotary.apply_rope import WORDS
from posref.rotary.axial_table import ARRANGEMENTS, Arrangement, axes_of_pairs, axial_table
from posref.rotary.norm_rope import PRECEDENCES, Precedence, norm_rope
from posref.rotary.rms_norm import check_norm
from posref.rotary.rope_frequencies import check_scaling, rope_frequencies
from posref.spec import Axes, Integer, Integers, OneOf, Real, encoding
from posref.types import ArrayOf, Layout, T


@encoding(
    title="QK-norm and M-RoPE",
    idea=(
        "Models that see images normalize each head of queries and keys, and rotate its pairs by time, row and column. Kernels "
        "do both in one pass, with the sections of M-RoPE inside."
    ),
    family="rotary",
    source="transformers 5.23.0, modeling_qwen3_vl.py",
    models=("Qwen3-VL", "HunYuan-VL"),
    domains={
        "sections": Integers(0),
        "arrangement": OneOf(ARRANGEMENTS),
        "layout": OneOf(WORDS),
        "base": Real(0),
        "eps": Real(0, usual=(2**-20, 0.25)),
        "weight_offset": Integer(0, 1),
        "precedence": OneOf(PRECEDENCES),
    },
    arrays={
        "x": Axes("2*sum(sections)+E | *R T 2*sum(sections)+E | *R T 2*sum(sections)+E"),
        "weight": Axes("2*sum(sections)+E | 2*sum(sections)+E | 2*sum(sections)+E"),
        "positions": Axes("len(sections) | len(sections) T | len(sections) ~*R ~T", "position"),
    },
    result="=x",
    rows="*R T",
    requires=(
        "len(sections) == 3 or arrangement not in ('interleaved', 'ernie')",
        "arrangement != 'interleaved' or 3 * sections[1] - 2 < sum(sections) and 3 * sections[2] - 1 < sum(sections)",
        "arrangement != 'ernie' or sections[1] == sections[2]",
        "sum(sections) >= 1",
    ),
    sums=True,
    read={
        "Qwen3-VL": "transformers 5.23.0, models/qwen3_vl/modeling_qwen3_vl.py:508-513",
        "HunYuan-VL": "transformers 5.23.0, models/hunyuan_vl/modeling_hunyuan_vl.py:539-542",
    },
)
def norm_mrope(
    x: ArrayOf[T],
    weight: ArrayOf[T],
    positions: ArrayOf[T],
    /,
    *,
    sections: Sequence[int],
    arrangement: Arrangement,
    layout: Layout,
    base: float,
    eps: float,
    weight_offset: Literal[0, 1],
    precedence: Precedence,
) -> T:
    r"""
    Return `x` normalized over the channels of each head, then rotated by positions of several axes, or rotated first.

    .. math:: y = R \, N(x) \; \text{ for "norm_first"}, \qquad y = N(R \, x) \; \text{ for "rope_first"}

    .. math:: N(x)_i = (w_i + o) \, \frac{x_i}{\sqrt{\frac{1}{D} \sum_j x_j^2 + \varepsilon}}, \qquad
        (R x)_u = x_u \cos\alpha_t - x_v \sin\alpha_t, \quad (R x)_v = x_v \cos\alpha_t + x_u \sin\alpha_t

    .. math:: \alpha_t = p_{a(t)} \, b^{-2t/d}

    N is `rms_norm`, over all D channels of a head, also over those that do not rotate. R is `mrope`: pair t, from 0 to d/2 - 1,
    is the channels u and v that `layout` names, and turns with the position :math:`p_{a(t)}` of the axis that `arrangement`
    gives it.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys as the projection gives them: one head in each row.
    weight : array, real floating, shape ``(D,)``
        w, learned, the same for all heads. Queries and keys have weights of their own: make two calls.
    positions : array, integer or at least float32, shape ``(A, *P)``
        Positions along each of the A axes, as in `mrope`: (A, T) for x of (B, H, T, D), and (A, T, 1) for x of (T, H, D).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    sections : sequence of A ints
        The number of pairs of each axis, time first. d, the number of leading channels that rotate, is twice their sum.
    arrangement : {"chunked", "interleaved", "round_robin", "ernie"}
        The axis a(t) of each pair: see `mrope`. `axial_table` names the users.

        - ``"chunked"``: The first pairs belong to axis 0, the next to axis 1, and so on.
        - ``"interleaved"``: Pairs alternate between three axes until axis 1 or 2 has all its pairs; axis 0 takes the rest.
        - ``"round_robin"``: Pairs alternate between all axes that still have room.
        - ``"ernie"``: Pairs of axis 1 and axis 2 alternate first; the rest belong to axis 0.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair t. `mrope` names the users.

        - ``"half"``: Pair t is channels t and t + d/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair t is the neighbouring channels 2t and 2t + 1, as in RoPE's paper.
        - ``"interleaved_to_half"``: Pair t is read at channels 2t and 2t + 1, and written at t and t + d/2.
    base : float
        b ("rope_theta" in configurations), above 0. For a context extension call `norm_rope` with a table of `axial_table`.
    eps : float
        Added to the mean of the squares, under the root, above 0.
    weight_offset : {0, 1}
        o: 1 if the weights are stored less 1, as Qwen3.5's are.
    precedence : {"norm_first", "rope_first"}
        Which comes first. The two differ, since w is not the same for both channels of a pair.

        - ``"norm_first"``: Normalize, then rotate. Used by Qwen3-VL.
        - ``"rope_first"``: Rotate, then normalize. Used by HunYuan-VL.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`. Arithmetic is in float32 or wider, with one rounding at the end.

    Raises
    ------
    ValueError
        As for `rms_norm` and `mrope`. Also if `precedence` is unknown.

    Notes
    -----
    In half precision kernels differ in what they round: see `norm_rope`.

    Examples
    --------
    >>> import numpy as np
    >>> x, weight, places = np.asarray([[1.0, -7.0, 5.0, 5.0]]), np.ones(4), np.asarray([[0], [1]])
    >>> options = {"sections": (1, 1), "arrangement": "chunked", "layout": "half", "base": 1.0}
    >>> norm_mrope(x, weight, places, eps=1e-6, weight_offset=0, precedence="norm_first", **options).round(4).tolist()
    [[0.2, -1.5979, 1.0, -0.6378]]
    """
    name = "norm_mrope"
    check_word(name, "layout", layout, WORDS)
    check_word(name, "precedence", precedence, PRECEDENCES)
    xp = library(name, x=x, weight=weight, positions=positions)
    check_positions(name, "positions", positions)
    check_lanes(name, "x", x)
    sections = check_integers(name, "sections", sections, 0)
    dim = 2 * sum(sections)
    if not 2 <= dim <= x.shape[-1]:
        most = x.shape[-1] // 2
        msg = f"{name}: sections must add up to at least 1 and at most {most} (half the channels of x); got {tuple(sections)}."
        raise ValueError(msg)
    check_coordinates(name, tuple(positions.shape), len(sections), tuple(x.shape[:-1]))
    check_scaling(name, dim, base=base, scaling=None, length=None)
    axes_of_pairs(name, sections, arrangement)
    check_norm(name, x.shape[-1], weight, eps=eps, weight_offset=weight_offset)
    inv_freq, factor = rope_frequencies(dim, base=base, xp=number_system(xp))
    cos, sin = axial_table(
        positions, inv_freq, sections=sections, arrangement=arrangement, attention_factor=factor, dtype=wide(x.dtype, xp)
    )
    return norm_rope(x, weight, cos, sin, layout=layout, eps=eps, weight_offset=weight_offset, precedence=precedence)
