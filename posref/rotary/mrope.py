"""M-RoPE, rotary embedding over time, height and width. Source: Wang et al., Qwen2-VL, arXiv:2409.12191, section 2.1."""

from collections.abc import Sequence

from posref.core.arrays import library, number_system, wide
from posref.core.checks import check_coordinates, check_flag, check_integers, check_lanes, check_positions, check_word
from posref.core.decoder import by_tokens
from posref.rotary.apply_rope import WORDS, apply_rope
from posref.rotary.axial_table import ARRANGEMENTS, Arrangement, axes_of_pairs, axial_table
from posref.rotary.rope_frequencies import check_scaling, rope_frequencies
from posref.scaling import Scaling
from posref.spec import Axes, Flag, Integer, Integers, OneOf, Real, Record, encoding
from posref.types import AnyArray, ArrayOf, Layout, T


@encoding(
    title="Multimodal RoPE (M-RoPE)",
    idea=(
        "A token of a video has a time, a row and a column. M-RoPE divides the channel pairs of RoPE among these three. A text "
        "token has the same number on all three, so text rotates just as in RoPE."
    ),
    family="rotary",
    source="arXiv:2409.12191, section 2.1",
    models=("Qwen2-VL", "Qwen2.5-VL", "Qwen3-VL", "Qwen3.5", "ERNIE 4.5-VL", "GLM-4.5V", "HunYuan-VL"),
    domains={
        "sections": Integers(0),
        "arrangement": OneOf(ARRANGEMENTS),
        "layout": OneOf(WORDS),
        "base": Real(0),
        "scaling": Record("2 * sum(sections)"),
        "length": Integer(0, optional=True),
        "inverse": Flag(),
    },
    invariants=("text is rope", "norm kept", "tail unchanged", "decode"),
    arrays={
        "x": Axes("2*sum(sections)+E | *R T 2*sum(sections)+E | *R T 2*sum(sections)+E"),  # E channels after the rotated ones
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
    read={
        "Qwen2-VL": "transformers 5.23.0, models/qwen2_vl/modeling_qwen2_vl.py:146-150",
        "Qwen3-VL": "transformers 5.23.0, models/qwen3_vl/modeling_qwen3_vl.py:182-186",
        "GLM-4.5V": "transformers 5.23.0, models/glm4v_moe/modeling_glm4v_moe.py:157-161",
        "ERNIE 4.5-VL": "transformers 5.23.0, models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py:166-170",
        "GLM-4.1V": "transformers 5.23.0, models/glm4v/modeling_glm4v.py:489-493",
    },
)
@by_tokens(x=(0, 1), positions=(1, 0))
def mrope(
    x: ArrayOf[T],
    positions: ArrayOf[T],
    /,
    *,
    sections: Sequence[int],
    arrangement: Arrangement,
    layout: Layout,
    base: float,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
    inverse: bool = False,
) -> T:
    r"""
    Return `x` with every channel pair rotated by an angle proportional to the position along one axis: time, height or width.

    .. math:: y_u = x_u \cos\alpha_i - x_v \sin\alpha_i, \qquad y_v = x_v \cos\alpha_i + x_u \sin\alpha_i, \qquad
        \alpha_i = p_{a(i)} \, \theta_i, \quad \theta_i = b^{-2i/d}

    Pair i, from 0 to d/2 - 1, is channels u and v (see `layout`). It rotates with the position :math:`p_{a(i)}` along axis
    a(i). There are A axes, and :math:`n_a` pairs for axis a (`sections`). `arrangement` gives a(i).

    If a token has the same position on every axis, this is `rope`, whatever the sections.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(A, *P)``
        Positions along each of the A axes, in the order of `sections`: time, height and width. `posref.positions.multimodal`
        makes them. For x of (B, H, T, D) pass (A, T) or (A, B, 1, T).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    sections : sequence of A ints
        n_a, the number of pairs of each axis, time first: (16, 24, 24) in Qwen2-VL, (24, 20, 20) in Qwen3-VL, (20, 22, 22) in
        ERNIE 4.5-VL (whose configuration writes height, width, time). d, the number of leading channels that rotate, is twice
        their sum.
    arrangement : {"chunked", "interleaved", "round_robin", "ernie"}
        The axis a(i) of each pair. `axial_table` names the users.

        - ``"chunked"``: The first n_0 pairs belong to axis 0, the next n_1 to axis 1, and so on.
        - ``"interleaved"``: Pairs alternate between three axes, 0, 1, 2, 0, 1, 2, until axis 1 or 2 has all its pairs; axis 0
          takes the rest. Pair i belongs to axis a = i mod 3 if a is 1 or 2 and i < 3 n_a, else to axis 0.
        - ``"round_robin"``: Pair i belongs to axis i mod A or, if that axis has all its pairs, to the next axis, cyclically,
          that has room. Pair i + 1 still starts from axis (i + 1) mod A.
        - ``"ernie"``: Pairs of axis 1 and axis 2 alternate first; the rest belong to axis 0. There are three axes and n_1 =
          n_2, and pair i belongs to axis 1 + (i mod 2) if i < n_1 + n_2.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair i.

        - ``"half"``: Pair i is channels i and i + d/2: the first half of the channels meets the second. Used by Qwen2-VL,
          Qwen3-VL, GLM-4.5V.
        - ``"interleaved"``: Pair i is the neighbouring channels 2i and 2i + 1, as in RoPE's paper. Used by ERNIE 4.5-VL,
          GLM-4.1V.
        - ``"interleaved_to_half"``: Pair i is read at channels 2i and 2i + 1, and written at i and i + d/2.
    base : float
        b ("rope_theta" in configurations), above 0.
    scaling : record of posref.scaling, optional
        A context extension, which changes theta: see `rope_frequencies`. An attention factor multiplies cos and sin.
    length : int or integer array without axes, optional
        The number of tokens in the sequence, cached ones included. Some scalings need it: see `rope_frequencies`.
    inverse : bool
        Apply the transpose: see `apply_rope`. The attention factor of a scaling still multiplies.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`; channels from d on are unchanged.

    Raises
    ------
    ValueError
        If sections do not fit the positions, x or the arrangement, positions do not broadcast or are half precision, or an
        option is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> x, places = np.asarray([[1.0, 1.0, 0.0, 0.0]]), np.asarray([[0], [1]])
    >>> mrope(x, places, sections=(1, 1), arrangement="chunked", layout="half", base=1.0).round(4).tolist()
    [[1.0, 0.5403, 0.0, 0.8415]]
    """
    check_word("mrope", "layout", layout, WORDS)
    xp = library("mrope", x=x, positions=positions)
    check_positions("mrope", "positions", positions)
    check_lanes("mrope", "x", x)
    sections = check_integers("mrope", "sections", sections, 0)
    dim = 2 * sum(sections)
    if not 2 <= dim <= x.shape[-1]:
        most = x.shape[-1] // 2
        msg = f"mrope: sections must add up to at least 1 and at most {most} (half the channels of x); got {tuple(sections)}."
        raise ValueError(msg)
    check_coordinates("mrope", tuple(positions.shape), len(sections), tuple(x.shape[:-1]))
    check_scaling("mrope", dim, base=base, scaling=scaling, length=length)
    axes_of_pairs("mrope", sections, arrangement)
    inverse = check_flag("mrope", "inverse", inverse)
    inv_freq, factor = rope_frequencies(dim, base=base, scaling=scaling, length=length, xp=number_system(xp))
    cos, sin = axial_table(
        positions, inv_freq, sections=sections, arrangement=arrangement, attention_factor=factor, dtype=wide(x.dtype, xp)
    )
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse)
