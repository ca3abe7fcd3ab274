"""RMS normalization and RoPE in one operation, as in fused kernels. Source: Qwen3 in transformers 5.23, modeling_qwen3.py."""

from typing import Literal, get_args

from posref.core.arrays import cast, library, wide
from posref.core.blocks import in_blocks
from posref.core.checks import check_lanes, check_real, check_word
from posref.rotary.apply_rope import LANES, WORDS, apply_rope, check_table
from posref.rotary.rms_norm import check_norm, rms_norm
from posref.spec import Axes, Integer, OneOf, Real, encoding
from posref.types import ArrayOf, Lanes, Layout, T

Precedence = Literal["norm_first", "rope_first"]
PRECEDENCES: tuple[Precedence, ...] = get_args(Precedence)


@encoding(
    title="QK-norm and RoPE",
    idea=(
        "Many models normalize each head of queries and keys, then rotate it by its position. Kernels do both in one pass. "
        "Since the weight differs from channel to channel, it matters which comes first."
    ),
    family="rotary",
    source="transformers 5.23.0, modeling_qwen3.py",
    models=("Qwen3", "Gemma 3", "HunYuan"),
    domains={
        "layout": OneOf(WORDS),
        "eps": Real(0, usual=(2**-20, 0.25)),
        "weight_offset": Integer(0, 1),
        "precedence": OneOf(PRECEDENCES),
        "lanes": OneOf(LANES),
    },
    arrays={
        "x": Axes("2*n+tail | *R T 2*n+tail | B T H 2*n+tail"),
        "weight": Axes("2*n+tail"),
        "cos": Axes("n | ~*R ~T n | T 1 n", usual=(-1.0, 1.0)),
        "sin": Axes("=cos", usual=(-1.0, 1.0)),
    },
    result="=x",
    rows="*R B H T",
    requires=("2*n+tail > 0", "H > 1"),
    sums=True,
    read={
        "Qwen3": "transformers 5.23.0, models/qwen3/modeling_qwen3.py:244-249",
        "Gemma 3": "transformers 5.23.0, models/gemma3/modeling_gemma3.py:345-349",
        "HunYuan": "transformers 5.23.0, models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py:196-199",
        "GPT-J": "transformers 5.23.0, models/gptj/modeling_gptj.py:58-62, 65-68, 197-208",
        "GPT-NeoX": "transformers 5.23.0, models/gpt_neox/modeling_gpt_neox.py:100-104, 107-140",
        "DeepSeek-V4": "transformers 5.23.0, models/deepseek_v4/modeling_deepseek_v4.py:353-370",
        "vLLM's CUDA kernel": "vllm-project/vllm@0f5257e, csrc/fused_qknorm_rope_kernel.cu:198-232",
        "vLLM's Helion kernel": "vllm 0.33.0, kernels/helion/ops/fused_qk_norm_rope.py:262-297",
        "TensorRT-LLM's kernel": (
            "NVIDIA/TensorRT-LLM@567239f, cpp/tensorrt_llm/kernels/fusedQKNormRopeKernel.cu:122-151, 244-259"
        ),
    },
)
@in_blocks(x=(0, 1), cos=(0, 1), sin=(0, 1))
def norm_rope(
    x: ArrayOf[T],
    weight: ArrayOf[T],
    cos: ArrayOf[T],
    sin: ArrayOf[T],
    /,
    *,
    layout: Layout,
    eps: float,
    weight_offset: Literal[0, 1],
    precedence: Precedence,
    lanes: Lanes = "leading",
) -> T:
    r"""
    Return `x` normalized over the channels of each head, then rotated by a table, or rotated first.

    .. math:: y = R \, N(x) \; \text{ for "norm_first"}, \qquad y = N(R \, x) \; \text{ for "rope_first"}

    .. math:: N(x)_i = (w_i + o) \, \frac{x_i}{\sqrt{\frac{1}{D} \sum_j x_j^2 + \varepsilon}}, \qquad
        (R x)_u = x_u c_t - x_v s_t, \quad (R x)_v = x_v c_t + x_u s_t

    N is `rms_norm`, over all D channels of a head, also over those that do not rotate. R is `apply_rope`: pair t, from 0 to
    d/2 - 1, is the channels u and v that `layout` names; c_t and s_t are its cosine and sine.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys as the projection gives them: one head in each row.
    weight : array, real floating, shape ``(D,)``
        w, learned, the same for all heads. Queries and keys have weights of their own: make two calls.
    cos, sin : arrays, shape ``(*P, d/2)``, d <= D
        From `rope_table`, or from `axial_table` for M-RoPE. P broadcasts to the leading axes of x, as in `apply_rope`: (T,) or
        (B, 1, T) for x of (B, H, T, D), and (T, 1) for x of (T, H, D). d channels rotate.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair t. `apply_rope` names the users.

        - ``"half"``: Pair t is channels t and t + d/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair t is the neighbouring channels 2t and 2t + 1, as in RoPE's paper.
        - ``"interleaved_to_half"``: Pair t is read at channels 2t and 2t + 1, and written at t and t + d/2.
    eps : float
        Added to the mean of the squares, under the root, above 0.
    weight_offset : {0, 1}
        o: 1 if the weights are stored less 1, as Gemma's are.
    precedence : {"norm_first", "rope_first"}
        Which comes first. The two differ, since w is not the same for both channels of a pair.

        - ``"norm_first"``: Normalize, then rotate. Used by Qwen3, Gemma 3.
        - ``"rope_first"``: Rotate, then normalize. Used by HunYuan.
    lanes : {"leading", "trailing"}
        Which d of the D channels rotate.

        - ``"leading"``: The first channels of the head rotate, the rest are only normalized. Used by GPT-J, GPT-NeoX.
        - ``"trailing"``: The last channels of the head rotate, those before them are only normalized. Used by DeepSeek-V4.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`. Arithmetic is in float32 or wider, with one rounding at the end.

    Raises
    ------
    ValueError
        As for `rms_norm` and `apply_rope`. Also if `precedence` is unknown.

    Notes
    -----
    In half precision kernels differ in what they round. TensorRT-LLM's kernel for Qwen3's norm and rotation, and vLLM's CUDA
    kernel after it, round the result alone, as here. vLLM's Helion kernel rounds before the weight, between norm and rotation,
    and every product, as transformers does. All are right: accuracy class "low" allows them, and "fused" allows only one
    rounding.

    OLMo 2 normalizes over all heads together, so it needs two calls: `rms_norm` of (B, T, H * D), then `apply_rope`. Values are
    not rotated. Gemma 4 normalizes them too, without a weight.

    Examples
    --------
    >>> import numpy as np
    >>> quarter = np.asarray([[0.0]]), np.asarray([[1.0]])
    >>> x, weight = np.asarray([[1.0, -7.0]]), np.asarray([1.0, 2.0])
    >>> norm_rope(x, weight, *quarter, layout="half", eps=1e-6, weight_offset=0, precedence="norm_first").round(4).tolist()
    [[2.8, 0.2]]
    >>> norm_rope(x, weight, *quarter, layout="half", eps=1e-6, weight_offset=0, precedence="rope_first").round(4).tolist()
    [[1.4, 0.4]]
    """
    name = "norm_rope"
    check_word(name, "layout", layout, WORDS)
    check_word(name, "lanes", lanes, LANES)
    check_word(name, "precedence", precedence, PRECEDENCES)
    check_lanes(name, "x", x)
    xp = library(name, x=x, weight=weight, cos=cos, sin=sin)
    check_real(name, cos=cos, sin=sin)
    check_table(name, x.shape, cos, sin)
    check_norm(name, x.shape[-1], weight, eps=eps, weight_offset=weight_offset)
    wider = cast(x, wide(x.dtype, xp))
    if precedence == "norm_first":
        normed = rms_norm(wider, weight, eps=eps, weight_offset=weight_offset)
        return cast(apply_rope(normed, cos, sin, layout=layout, lanes=lanes), x.dtype)
    rotated = apply_rope(wider, cos, sin, layout=layout, lanes=lanes)
    return cast(rms_norm(rotated, weight, eps=eps, weight_offset=weight_offset), x.dtype)
