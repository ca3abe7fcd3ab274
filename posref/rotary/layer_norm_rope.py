"""Layer normalization and RoPE in one operation, as in sparse indexers. Source: transformers 5.23, modeling_deepseek_v32.py."""

from posref.core.arrays import cast, library, wide
from posref.core.blocks import in_blocks
from posref.core.checks import as_number, check_lanes, check_positive, check_real, check_word
from posref.rotary.apply_rope import LANES, WORDS, apply_rope, check_table
from posref.rotary.norm_rope import PRECEDENCES, Precedence
from posref.rotary.rms_norm import normalized
from posref.spec import Axes, OneOf, Real, encoding
from posref.types import ArrayOf, Lanes, Layout, T


@encoding(
    title="LayerNorm and RoPE",
    idea=(
        "A sparse indexer scores all keys by small vectors. LayerNorm takes their mean away, divides by their deviation and "
        "adds a bias. A part of their channels is then rotated, in the same pass of a kernel."
    ),
    tool=True,
    family="rotary",
    source="transformers 5.23.0, modeling_deepseek_v32.py",
    models=("DeepSeek-V3.2", "GLM-5"),
    domains={
        "layout": OneOf(WORDS),
        "eps": Real(0, usual=(2**-20, 0.25)),
        "precedence": OneOf(PRECEDENCES),
        "lanes": OneOf(LANES),
    },
    arrays={
        "x": Axes("2*n+tail | *R T 2*n+tail | B T H 2*n+tail"),
        "weight": Axes("2*n+tail"),
        "bias": Axes("2*n+tail"),
        "cos": Axes("n | ~*R ~T n | T 1 n", usual=(-1.0, 1.0)),
        "sin": Axes("=cos", usual=(-1.0, 1.0)),
    },
    result="=x",
    rows="*R B H T",
    requires=("2*n+tail > 0", "H > 1"),
    sums=True,
    read={
        "DeepSeek-V3.2": "transformers 5.23.0, models/deepseek_v32/modeling_deepseek_v32.py:171, 214-221",
        "GLM-5": "transformers 5.23.0, models/glm_moe_dsa/modeling_glm_moe_dsa.py:213-222",
    },
)
@in_blocks(x=(0, 1), cos=(0, 1), sin=(0, 1))
def layer_norm_rope(
    x: ArrayOf[T],
    weight: ArrayOf[T],
    bias: ArrayOf[T],
    cos: ArrayOf[T],
    sin: ArrayOf[T],
    /,
    *,
    layout: Layout,
    eps: float,
    precedence: Precedence,
    lanes: Lanes = "leading",
) -> T:
    r"""
    Return `x` normalized by mean and variance over the channels of each head, then rotated by a table, or rotated first.

    .. math:: y = R \, N(x) \; \text{ for "norm_first"}, \qquad y = N(R \, x) \; \text{ for "rope_first"}

    .. math:: N(x)_i = w_i \, \frac{x_i - \mu}{\sqrt{\frac{1}{D} \sum_j (x_j - \mu)^2 + \varepsilon}} + b_i, \qquad
        \mu = \frac{1}{D} \sum_j x_j

    Mean and variance are over all D channels of a head. R is `apply_rope`.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys as the projection gives them: one head in each row. An indexer has one key for all heads.
    weight : array, real floating, shape ``(D,)``
        w, learned, the same for all heads.
    bias : array, real floating, shape ``(D,)``
        b. Pass zeros for a norm without a bias.
    cos, sin : arrays, shape ``(*P, d/2)``, d <= D
        From `rope_table`: see `norm_rope`. d channels rotate. With cosines of 1 and sines of 0 the norm alone is left.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair t: see `apply_rope`.

        - ``"half"``: Pair t is channels t and t + d/2: the first half of the channels meets the second. Used by DeepSeek-V3.2.
        - ``"interleaved"``: Pair t is the neighbouring channels 2t and 2t + 1, as in RoPE's paper.
        - ``"interleaved_to_half"``: Pair t is read at channels 2t and 2t + 1, and written at t and t + d/2. Used by GLM-5.
    eps : float
        Added to the variance, under the root, above 0.
    precedence : {"norm_first", "rope_first"}
        Which comes first.

        - ``"norm_first"``: Normalize, then rotate. Used by DeepSeek-V3.2, GLM-5.
        - ``"rope_first"``: Rotate, then normalize.
    lanes : {"leading", "trailing"}
        Which d of the D channels rotate.

        - ``"leading"``: The first channels of the head rotate, the rest are only normalized. Used by DeepSeek-V3.2, GLM-5.
        - ``"trailing"``: The last channels of the head rotate, those before them are only normalized.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`. Arithmetic is in float32 or wider, with one rounding at the end.

    Raises
    ------
    ValueError
        As for `apply_rope`. Also if weight or bias does not have one number for each channel, x has no channels, `eps` is not
        above 0, or `precedence` is unknown.

    Notes
    -----
    A norm over the channels of all heads together needs two calls: this one of (B, T, H * D) with cosines of 1, then
    `apply_rope`. Code that subtracts the square of the mean from the mean of the squares loses digits where the mean is far
    from 0: from a mean of some 30 deviations on it leaves the bounds. No stored case has such numbers, but fresh calls of
    `posref check` do.

    Examples
    --------
    >>> import numpy as np
    >>> quarter = np.asarray([[0.0]]), np.asarray([[1.0]])
    >>> x, weight, bias = np.asarray([[5.0, 7.0]]), np.asarray([1.0, 2.0]), np.asarray([0.0, 1.0])
    >>> layer_norm_rope(x, weight, bias, *quarter, layout="half", eps=1e-9, precedence="norm_first").round(4).tolist()
    [[-3.0, -1.0]]
    """
    name = "layer_norm_rope"
    check_word(name, "layout", layout, WORDS)
    check_word(name, "lanes", lanes, LANES)
    check_word(name, "precedence", precedence, PRECEDENCES)
    check_lanes(name, "x", x)
    xp = library(name, x=x, weight=weight, bias=bias, cos=cos, sin=sin)
    check_real(name, weight=weight, bias=bias, cos=cos, sin=sin)
    check_table(name, x.shape, cos, sin)
    check_positive(name, "eps", eps)
    channels = x.shape[-1]
    if not channels or tuple(weight.shape) != (channels,) or tuple(bias.shape) != (channels,):
        msg = (
            f"{name}: weight and bias must have one number for each of the {channels} channels of x, and x at least one; "
            f"got shapes {tuple(weight.shape)} and {tuple(bias.shape)}."
        )
        raise ValueError(msg)
    wider = cast(x, wide(x.dtype, xp))
    if precedence == "rope_first":
        wider = apply_rope(wider, cos, sin, layout=layout, lanes=lanes)
    centred = wider - xp.sum(wider, axis=-1, keepdims=True) / channels
    normed = normalized(centred, as_number(eps), xp) * cast(weight, wider.dtype) + cast(bias, wider.dtype)
    if precedence == "norm_first":
        normed = apply_rope(normed, cos, sin, layout=layout, lanes=lanes)
    return cast(normed, x.dtype)
