"""RMS normalization of queries and keys before RoPE. Source: Zhang and Sennrich, arXiv:1910.07467, equation (4)."""

from typing import Any, Literal

from posref.core.arrays import Array, Namespace, beside, cast, library, number_system, wide
from posref.core.blocks import in_blocks
from posref.core.checks import as_number, check_lanes, check_positive, check_real, quoted
from posref.spec import Axes, Integer, Real, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Root mean square normalization",
    idea=(
        "A vector is divided by the root of the mean of its squares, and each channel is multiplied by a learned weight. "
        "Models normalize queries and keys in this way before they rotate them, so that logits do not grow."
    ),
    tool=True,
    family="rotary",
    source="arXiv:1910.07467, equation (4)",
    models=("Qwen3", "Gemma 3", "OLMo 2"),
    domains={"eps": Real(0, usual=(2**-20, 0.25)), "weight_offset": Integer(0, 1)},
    arrays={"x": Axes("D | *R T D"), "weight": Axes("D")},
    result="=x",
    rows="*R T",
    requires=("D >= 1",),
    noun="normalized",
    read={
        "Gemma 3": "transformers 5.23.0, models/gemma3/modeling_gemma3.py:141-149",
        "OLMo 2": "transformers 5.23.0, models/olmo2/modeling_olmo2.py:59-64, 213-214",
        "Qwen3": "transformers 5.23.0, models/qwen3/modeling_qwen3.py:58-63, 229-230",
    },
)
@in_blocks(x=(0, 1))
def rms_norm(x: ArrayOf[T], weight: ArrayOf[T], /, *, eps: float, weight_offset: Literal[0, 1]) -> T:
    r"""
    Return `x` divided by the root of the mean of its squares, and multiplied by a weight for each channel.

    .. math:: y_i = (w_i + o) \, \frac{x_i}{\sqrt{\frac{1}{D} \sum_{j=0}^{D-1} x_j^2 + \varepsilon}}, \qquad i = 0 \dots D-1

    The mean is over the last axis, the D channels. :math:`\varepsilon` is `eps`, inside the root. o is `weight_offset`.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys before the rotation. R are the leading axes. For a norm of each head pass ``(B, T, H, D)`` or
        ``(B, H, T, D)``. OLMo 2 and MiniMax-M2 normalize over all heads together: pass ``(B, T, H * D)`` and reshape after.
    weight : array, real floating, shape ``(D,)``
        w. Pass ones, with offset 0, for a norm without a weight (Gemma 4 normalizes its values so).
    eps : float
        Added to the mean of the squares, above 0.
    weight_offset : {0, 1}
        Added to the weight: 1 in models whose weights are stored less 1. These are Gemma, Gemma 2, Gemma 3, RecurrentGemma,
        T5Gemma, T5Gemma 2, VaultGemma, Qwen3-Next, Qwen3.5, Qwen4-Exp, Step-3.7, MiniMax-M3, Muse Spark and Muse Glimmer. It is
        0 in Gemma 4, Qwen3 and OLMo 2.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`. Squares, mean, root and products are in float32 or wider, with one rounding at the end.

    Raises
    ------
    ValueError
        If `x` or `weight` is not real floating, `weight` does not have one number for each channel, x has no channels, `eps` is
        not above 0, or `weight_offset` is neither 0 nor 1.

    Notes
    -----
    In half precision libraries differ in what they round. Gemma, OLMo 2, OLMo 3 and DeepSeek-V4 in transformers round the
    result alone, as here. Llama, Qwen3, GLM-4 and MiniMax-M2 first round the normalized x to the dtype of x, and then its
    product with the weight. Both are right: accuracy class "low" allows either, and "fused" allows only one rounding.

    LayerNorm also subtracts the mean of x: Cohere normalizes queries and keys by a LayerNorm, not by this. Llama 4's "L2 norm"
    divides by the root of the mean too: it is this norm with weights of 1. HunYuan and Llama 4 normalize after the rotation.

    Gemma 4 raises the mean to the power -1/2. Other code divides by a root or multiplies by its inverse.

    Examples
    --------
    >>> import numpy as np
    >>> x, weight = np.asarray([[1.0, -7.0]]), np.asarray([0.0, 1.0])
    >>> rms_norm(x, weight, eps=1e-6, weight_offset=1).round(4).tolist()
    [[0.2, -2.8]]
    """
    name = "rms_norm"
    check_lanes(name, "x", x)
    xp = library(name, x=x, weight=weight)
    check_norm(name, x.shape[-1], weight, eps=eps, weight_offset=weight_offset)
    normed = normalized(x, as_number(eps), xp)
    gain = cast(weight, normed.dtype)
    gain = gain + 1 if weight_offset else gain
    return cast(normed * gain, x.dtype)


def check_norm(function: str, channels: int, weight: Array, *, eps: Any, weight_offset: Any) -> None:
    """Raise if the weight or an option of a norm over `channels` is wrong."""
    check_real(function, weight=weight)
    if not channels or tuple(weight.shape) != (channels,):
        msg = (
            f"{function}: weight must have one number for each of the {channels} channels of x, and x at least one; "
            f"got shape {tuple(weight.shape)}."
        )
        raise ValueError(msg)
    check_positive(function, "eps", eps)
    if isinstance(weight_offset, bool) or as_number(weight_offset) not in (0, 1):
        need = "0, or 1 for weights that are stored less 1 (Gemma)"
        msg = f"{function}: weight_offset must be {need}; got {quoted(weight_offset)}."
        raise ValueError(msg)


def normalized(x: Array, eps: float, xp: Namespace) -> Array:
    """Return x divided by the root of the mean of its squares, in float32 or wider."""
    wider = cast(x, wide(x.dtype, xp))
    # arrays of one number: a kernel may store a scalar argument in half precision, but neither of these
    channels, small = (beside([number], wider, wider.dtype) for number in (float(x.shape[-1]), eps))
    mean = xp.sum(wider * wider, axis=-1, keepdims=True) / channels + small
    inverse = 1 / xp.sqrt(mean)
    system = number_system(xp)
    if system is not None:  # error bounds also cover the power -1/2, as Gemma 4 computes it
        inverse = system.either(inverse, lambda: mean**-0.5)
    return wider * inverse
