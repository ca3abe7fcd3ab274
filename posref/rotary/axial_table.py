"""Tables for RoPE over several position axes. Sources: Wang et al., arXiv:2409.12191 (M-RoPE); Heo et al., arXiv:2403.13298."""

from collections.abc import Sequence
from typing import Literal, get_args

from posref.core.angles import cos_sin_of_pairs
from posref.core.arrays import DType, beside, cast, index_dtype, library, result_dtype, times, with_axis_moved
from posref.core.checks import check_finite, check_frequencies, check_integers, check_positions, check_word
from posref.spec import Axes, Integers, OneOf, Real, encoding
from posref.types import AnyArray, ArrayOf, T

Arrangement = Literal["chunked", "interleaved", "round_robin", "ernie"]
ARRANGEMENTS: tuple[Arrangement, ...] = get_args(Arrangement)


@encoding(
    title="Cosines and sines of multimodal RoPE",
    idea=(
        "A token of a video has a time, a row and a column. Each channel pair follows one of these axes: its angle is the "
        "position along that axis times the pair's frequency. This gives the cosine and sine of every angle."
    ),
    family="rotary",
    source="arXiv:2409.12191, section 2.1",
    models=("Qwen2-VL", "Qwen2.5-VL", "Qwen3-VL", "ERNIE 4.5-VL", "GLM-4.5V"),
    outputs=("cos", "sin"),
    domains={"sections": Integers(0), "arrangement": OneOf(ARRANGEMENTS), "attention_factor": Real(0)},
    arrays={"positions": Axes("len(sections) *P", "position"), "inv_freq": Axes("sum(sections)", "wide")},
    result="*P sum(sections)",
    rows="*P",
    requires=(
        "len(sections) == 3 or arrangement not in ('interleaved', 'ernie')",
        "arrangement != 'interleaved' or 3 * sections[1] - 2 < sum(sections) and 3 * sections[2] - 1 < sum(sections)",
        "arrangement != 'ernie' or sections[1] == sections[2]",
        "sum(sections) >= 1",
    ),
    rounded=("inv_freq",),
    read={
        "Qwen2-VL": "transformers 5.23.0, models/qwen2_vl/modeling_qwen2_vl.py:137-142",
        "Qwen2.5-VL": "transformers 5.23.0, models/qwen2_5_vl/modeling_qwen2_5_vl.py:539-544",
        "GLM-4.1V": "transformers 5.23.0, models/glm4v/modeling_glm4v.py:481-486",
        "Qwen3-VL": "transformers 5.23.0, models/qwen3_vl/modeling_qwen3_vl.py:406-415",
        "Qwen3.5": "transformers 5.23.0, models/qwen3_5/modeling_qwen3_5.py:189-198",
        "ERNIE 4.5-VL": "transformers 5.23.0, models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py:119-126",
        "SGLang with mrope_interleaved_glm": "sglang 0.5.23, sglang/srt/layers/rotary_embedding/mrope.py:112-130",
    },
)
def axial_table(
    positions: ArrayOf[T],
    inv_freq: AnyArray,
    /,
    *,
    sections: Sequence[int],
    arrangement: Arrangement,
    attention_factor: float = 1.0,
    dtype: DType | None = None,
) -> tuple[T, T]:
    r"""
    Return the cosine and sine of every channel pair's angle. Each pair rotates with one of several position axes.

    .. math:: c_i = f \cos(p_{a(i)} \, \theta_i), \qquad s_i = f \sin(p_{a(i)} \, \theta_i), \qquad i = 0 \dots d/2 - 1

    Here :math:`p_a` is the position along axis a, f the attention factor, and a(i) the axis of pair i. There are A axes, and
    :math:`n_a` pairs for axis a (`sections`). `arrangement` gives a(i).

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(A, *P)``
        Positions along each axis. In language models the axes are time, height and width, and a text token has the same
        position on all of them.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    inv_freq : array, at least float32, shape ``(d/2,)``
        theta, in radians per unit of the positions, in the order of the pairs.
    sections : sequence of A ints
        n_a, the number of pairs of each axis, in the order of `positions`. They add up to d/2.
    arrangement : {"chunked", "interleaved", "round_robin", "ernie"}
        The axis a(i) of each pair. Vision encoders whose axes have their own frequencies (`axial_frequencies`) have "chunked".
        ERNIE 4.5-VL's configuration writes its sections as height, width, time.

        - ``"chunked"``: The first n_0 pairs belong to axis 0, the next n_1 to axis 1, and so on. Used by Qwen2-VL, Qwen2.5-VL,
          GLM-4.1V.
        - ``"interleaved"``: Pairs alternate between three axes, 0, 1, 2, 0, 1, 2, until axis 1 or 2 has all its pairs; axis 0
          takes the rest. Pair i belongs to axis a = i mod 3 if a is 1 or 2 and i < 3 n_a, else to axis 0. Used by Qwen3-VL,
          Qwen3.5.
        - ``"round_robin"``: Pair i belongs to axis i mod A or, if that axis has all its pairs, to the next axis, cyclically,
          that has room. Pair i + 1 still starts from axis (i + 1) mod A. Used by SGLang with
          mrope_interleaved_glm.
        - ``"ernie"``: Pairs of axis 1 and axis 2 alternate first; the rest belong to axis 0. There are three axes and n_1 =
          n_2, and pair i belongs to axis 1 + (i mod 2) if i < n_1 + n_2. Used by ERNIE 4.5-VL.
    attention_factor : float
        f, which multiplies cos and sin: from `rope_frequencies`.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    cos, sin : arrays, shape ``(*P, d/2)``
        For `apply_rope`.

    Raises
    ------
    ValueError
        If positions or `inv_freq` are half precision, `inv_freq` is not 1-D, positions do not have one row for each section,
        sections do not add up to d/2 or do not fit the arrangement, the arrangement is unknown, or `attention_factor` is not
        finite.

    Examples
    --------
    >>> import numpy as np
    >>> cos, sin = axial_table(np.asarray([[0], [1]]), np.asarray([1.0, 1.0]), sections=(1, 1), arrangement="chunked")
    >>> sin.round(4).tolist()
    [[0.0, 0.8415]]
    """
    name = "axial_table"
    check_positions(name, "positions", positions)
    check_frequencies(name, "inv_freq", inv_freq)
    if len(inv_freq.shape) != 1:
        msg = f"{name}: inv_freq must have one axis, (d/2,); got shape {tuple(inv_freq.shape)}."
        raise ValueError(msg)
    axes = axes_of_pairs(name, sections, arrangement)
    if not hasattr(attention_factor, "__array_namespace__"):  # the number systems of error bounds pass unchanged
        attention_factor = check_finite(name, "attention_factor", attention_factor)
        attention_factor = float(attention_factor)
    if len(axes) != inv_freq.shape[0] or positions.ndim < 1 or positions.shape[0] != len(sections):
        msg = (
            f"{name}: sections must have one entry for each row of positions, and add up to "
            f"{inv_freq.shape[0]} (the pairs of inv_freq); "
            f"got {tuple(sections)} and positions of shape {tuple(positions.shape)}."
        )
        raise ValueError(msg)
    xp = library(name, positions=positions)
    dtype = result_dtype(name, positions, dtype)
    index = beside(axes, positions, index_dtype(positions))
    of_pairs = with_axis_moved(xp.take(positions, index, axis=0), 0, -1)
    cos, sin = cos_sin_of_pairs(of_pairs, inv_freq, dtype=dtype)
    return cast(times(cos, attention_factor), dtype), cast(times(sin, attention_factor), dtype)


def axes_of_pairs(function: str, sections: Sequence[int], arrangement: str) -> list[int]:
    """Return the axis of every pair."""
    check_word(function, "arrangement", arrangement, ARRANGEMENTS)
    sections = check_integers(function, "sections", sections, 0)
    if arrangement in ("interleaved", "ernie") and len(sections) != 3:
        msg = f"{function}: sections must have three entries with arrangement {arrangement!r}; got {tuple(sections)}."
        raise ValueError(msg)
    if arrangement == "ernie" and sections[1] != sections[2]:
        msg = f"{function}: sections 1 and 2 (height and width) must be equal with arrangement 'ernie'; got {tuple(sections)}."
        raise ValueError(msg)
    pairs = sum(sections)
    if arrangement == "chunked":
        axes = [axis for axis, section in enumerate(sections) for _ in range(section)]
    elif arrangement == "interleaved":
        axes = [i % 3 if i % 3 and i < 3 * sections[i % 3] else 0 for i in range(pairs)]
    elif arrangement == "ernie":
        both = sections[1] + sections[2]
        axes = [1 + i % 2 if i < both else 0 for i in range(pairs)]
    else:
        axes = _round_robin(sections)
    counts = tuple(axes.count(axis) for axis in range(len(sections)))
    if counts != tuple(sections):
        msg = (
            f"{function}: sections must fit arrangement {arrangement!r}, which would give the axes {counts} pairs; "
            f"got {tuple(sections)}. mixed_table takes any other allocation, as timm's of sections that do not fill the pairs."
        )
        raise ValueError(msg)
    return axes


def _round_robin(sections: Sequence[int]) -> list[int]:
    """Return the axis of every pair: axis i mod A, or the next one with room."""
    axes: list[int] = []
    for i in range(sum(sections)):
        axis = i % len(sections)
        while axes.count(axis) == sections[axis]:
            axis = (axis + 1) % len(sections)
        axes.append(axis)
    return axes
