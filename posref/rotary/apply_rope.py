"""The rotation of RoPE by a given table. Source: Su et al., arXiv:2104.09864, equation (34)."""

from typing import get_args

from posref.core.arrays import Array, library, wide
from posref.core.checks import check_flag, check_real, check_rows, check_word
from posref.core.decoder import by_table
from posref.core.pairs import Pairs, rotate_pairs
from posref.spec import Axes, Flag, OneOf, encoding
from posref.types import ArrayOf, Lanes, Layout, T

WORDS: tuple[Layout, ...] = get_args(Layout)
LANES: tuple[Lanes, ...] = get_args(Lanes)
# layout -> where pair i is read and written: "half" is channels (i, i + d/2), "interleaved" channels (2i, 2i + 1)
LAYOUTS: dict[Layout, tuple[Pairs, Pairs]] = {
    "half": ("half", "half"),
    "interleaved": ("interleaved", "interleaved"),
    "interleaved_to_half": ("interleaved", "half"),
}


@encoding(
    title="Rotation by a table of cosines and sines",
    idea=(
        "RoPE takes two channels as a point in the plane and rotates it. Given cosines and sines, this rotates. Libraries "
        "differ in which two channels are a pair, and a model's weights fit only one choice."
    ),
    family="rotary",
    source="arXiv:2104.09864, equation (34)",
    models=("Llama", "GPT-J", "GPT-NeoX", "DeepSeek"),
    domains={"layout": OneOf(WORDS), "inverse": Flag(), "lanes": OneOf(LANES)},
    invariants=("norm kept", "tail unchanged", "batch equivariant"),
    arrays={
        "x": Axes("2*n+tail | *R T 2*n+tail | B T H 2*n+tail"),
        "cos": Axes("n | ~*R ~T n | T 1 n", usual=(-1.0, 1.0)),
        "sin": Axes("=cos", usual=(-1.0, 1.0)),
    },
    result="=x",
    rows="*R B H T",
    requires=("H > 1",),
    sums=True,
    rounded=("result",),
    read={
        "GPT-NeoX": "transformers 5.23.0, models/gpt_neox/modeling_gpt_neox.py:100-104, 107-140",
        "Llama, Qwen, Mistral and Gemma in transformers": (
            "transformers 5.23.0, models/llama/modeling_llama.py:119-123; transformers 5.23.0, "
            "models/qwen2/modeling_qwen2.py:97-101; transformers 5.23.0, "
            "models/mistral/modeling_mistral.py:50-54; transformers 5.23.0, "
            "models/gemma/modeling_gemma.py:146-150"
        ),
        "gpt-oss": "openai/gpt-oss@7b58334, gpt_oss/torch/model.py:50-61",
        "GPT-J": "transformers 5.23.0, models/gptj/modeling_gptj.py:58-62, 65-68, 197-208",
        "Meta's own Llama": "meta-llama/llama-models@a9c89c4, models/llama3/model.py:83-93",
        "Llama 4": "meta-llama/llama-models@a9c89c4, models/llama4/model.py:89-99",
        "RoFormer": "transformers 5.23.0, models/roformer/modeling_roformer.py:220-244",
        "Cohere": "transformers 5.23.0, models/cohere/modeling_cohere.py:167-172",
        "GLM": "transformers 5.23.0, models/glm/modeling_glm.py:151-155",
        "DeepSeek-V2": "transformers 5.23.0, models/deepseek_v2/modeling_deepseek_v2.py:259-272",
        "DeepSeek-V3 in transformers": "transformers 5.23.0, models/deepseek_v3/modeling_deepseek_v3.py:310-346",
        "Mistral 4": "transformers 5.23.0, models/mistral4/modeling_mistral4.py:319-355",
        "LongCat-Flash": "transformers 5.23.0, models/longcat_flash/modeling_longcat_flash.py:281-317",
        "DeepSeek-V4": "transformers 5.23.0, models/deepseek_v4/modeling_deepseek_v4.py:353-370",
        "Kimi K2.5 in transformers": (
            "transformers 5.23.0, models/kimi_k25/configuration_kimi_k25.py:69, 85-86; "
            "models/deepseek_v3/modeling_deepseek_v3.py:310-346"
        ),
    },
)
@by_table
def apply_rope(
    x: ArrayOf[T], cos: ArrayOf[T], sin: ArrayOf[T], /, *, layout: Layout, inverse: bool = False, lanes: Lanes = "leading"
) -> T:
    r"""
    Return `x` with every channel pair rotated by the angle whose cosine and sine are in the table.

    .. math:: y_u = x_u \, c_i - x_v \, s_i, \qquad y_v = x_v \, c_i + x_u \, s_i, \qquad i = 0 \dots d/2-1

    A channel (a lane in the option `lanes`) is one entry of the last axis of `x`. Pair i is the two channels u and v that
    `layout` names. Column i of the table holds its cosine c_i and sine s_i.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys. R are the leading axes, for example batch, heads and tokens.
    cos, sin : arrays, shape ``(*P, d/2)``, d <= D
        From `rope_table`. P broadcasts to the leading axes of x: for x of (B, H, T, D), P is (T,) or (B, 1, T); for
        (B, T, H, D), it is (B, T, 1), or (T, 1) if H is above 1. d channels rotate; the others are unchanged.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair i, counted from the first channel that rotates.

        - ``"half"``: Pair i is channels i and i + d/2: the first half of the channels meets the second. Used by GPT-NeoX;
          Llama, Qwen, Mistral and Gemma in transformers; gpt-oss.
        - ``"interleaved"``: Pair i is the neighbouring channels 2i and 2i + 1, as in RoPE's paper. Used by GPT-J, Meta's own
          Llama, Llama 4, RoFormer, Cohere, GLM, DeepSeek-V2.
        - ``"interleaved_to_half"``: Pair i is read at channels 2i and 2i + 1, and written at i and i + d/2. Used by DeepSeek-V3
          in transformers, Kimi K2.5 in transformers, Mistral 4, LongCat-Flash.
    inverse : bool
        Apply the transpose: read where the rotation writes, write where it reads, and change the sign of s_i. This undoes the
        rotation if the table has no attention factor. It is always the vjp in `x`.
    lanes : {"leading", "trailing"}
        Which d of the D channels rotate.

        - ``"leading"``: The first channels of the head rotate, the rest stay as they are. Used by GPT-J, GPT-NeoX.
        - ``"trailing"``: The last channels of the head rotate, those before them stay as they are. Used by DeepSeek-V4.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`. Arithmetic is in float32 or wider, with one rounding at the end.

    Raises
    ------
    ValueError
        If `layout` or `lanes` is unknown, `inverse` is neither True nor False, x is not real floating, or the tables differ in
        shape, have more than D/2 columns, or do not broadcast to the leading axes of x.

    Examples
    --------
    >>> import numpy as np
    >>> quarter = np.asarray([[0.0, 0.0]]), np.asarray([[1.0, 1.0]])
    >>> apply_rope(np.asarray([[1.0, 2.0, 3.0, 4.0]]), *quarter, layout="half").tolist()
    [[-3.0, -4.0, 1.0, 2.0]]
    """
    check_word("apply_rope", "layout", layout, WORDS)
    check_word("apply_rope", "lanes", lanes, LANES)
    inverse = check_flag("apply_rope", "inverse", inverse)
    xp = library("apply_rope", x=x, cos=cos, sin=sin)
    shape, half = x.shape, cos.shape[-1]
    check_table("apply_rope", shape, cos, sin)
    work = wide(cos.dtype, xp)
    if not x.dtype == cos.dtype == sin.dtype == work:
        check_real("apply_rope", x=x, cos=cos, sin=sin)
    read, write = LAYOUTS[layout]
    if inverse:
        read, write, sin = write, read, -sin  # type: ignore[operator]  # masks have no minus, reals have one
    start = shape[-1] - 2 * half if lanes == "trailing" else 0
    return rotate_pairs(x, cos, sin, read=read, write=write, start=start)


def check_table(function: str, shape: tuple[int, ...], cos: Array, sin: Array) -> None:
    """Raise if a table of cosines and sines does not fit an x of `shape`."""
    half = cos.shape[-1]
    if cos.shape != sin.shape or 2 * half > shape[-1]:
        msg = (
            f"{function}: cos and sin must have the same shape, with at most {shape[-1] // 2} columns (half the last axis of "
            f"x); got {tuple(cos.shape)} and {tuple(sin.shape)}.{_whole_width(half, shape[-1])}"
        )
        raise ValueError(msg)
    check_rows(function, "cos", cos.shape[:-1], shape[:-1])


def _whole_width(columns: int, channels: int) -> str:
    """Return advice for a table that holds every frequency twice, or nothing."""
    twice = columns == channels and columns % 2 == 0
    return f" If the tables hold every frequency twice, as in transformers, pass [..., :{channels // 2}]." if twice else ""
