"""RoPE, rotary position embedding. Source: Su et al., arXiv:2104.09864, section 3.2."""

from posref.core.arrays import library, number_system, wide
from posref.core.checks import check_flag, check_lanes, check_positions, check_rotated, check_rows, check_word
from posref.core.decoder import by_tokens
from posref.rotary.apply_rope import LANES, WORDS, apply_rope
from posref.rotary.rope_frequencies import check_scaling, rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.scaling import Scaling
from posref.spec import Axes, Flag, Integer, OneOf, Real, Record, encoding
from posref.types import AnyArray, ArrayOf, Lanes, Layout, T


@encoding(
    title="Rotary position embedding (RoPE)",
    idea=(
        "Two channels of a query or key are a point in the plane. RoPE rotates it by an angle that grows with the position, "
        "fast in some pairs and slowly in others. The product of a rotated query and key then depends only on the offset "
        "between them."
    ),
    family="rotary",
    source="arXiv:2104.09864, section 3.2",
    models=("Llama", "Qwen", "Mistral", "Gemma", "GPT-NeoX", "GPT-J", "DeepSeek", "gpt-oss"),
    domains={
        "layout": OneOf(WORDS),
        "base": Real(0, usual=(2, 1e7)),
        "rotary_dim": Integer(2, step=2, optional=True, usual=64),
        "scaling": Record("rotary_dim or D"),
        "length": Integer(0, optional=True, usual=2**20),
        "inverse": Flag(),
        "lanes": OneOf(LANES),
    },
    invariants=("identity at 0", "relative", "norm kept", "tail unchanged", "batch equivariant", "chunks", "decode"),
    arrays={"x": Axes("D | *R T D | B T H D"), "positions": Axes(" | ~*R ~T | T 1", "position")},
    result="=x",
    rows="*R B H T",
    requires=("2 <= (rotary_dim or D) <= D", "(rotary_dim or D) % 2 == 0", "H > 1"),
    sums=True,
)
@by_tokens(x=(0, 1), positions=(0, 0))
def rope(
    x: ArrayOf[T],
    positions: ArrayOf[T],
    /,
    *,
    layout: Layout,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
    inverse: bool = False,
    lanes: Lanes = "leading",
) -> T:
    r"""
    Return `x` with every channel pair rotated by an angle proportional to the token's position.

    .. math:: (R_p x)_u = x_u \cos p\theta_i - x_v \sin p\theta_i, \qquad
        (R_p x)_v = x_v \cos p\theta_i + x_u \sin p\theta_i, \qquad \theta_i = b^{-2i/d}, \quad i = 0 \dots d/2-1

    Here p is the position, and pair i is channels u and v (see `layout`). So :math:`\langle R_p q, R_n k \rangle` depends only
    on p - n.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys. Its last axis holds the channels.
    positions : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens. They broadcast to the leading axes of x: for (B, H, T, D) pass (T,) or (B, 1, T); for (B, T, H, D)
        pass (B, T, 1), or (T, 1) if H is above 1.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair i. `apply_rope` names the users. `posref.configs.LAYOUTS` lists layouts by model type.

        - ``"half"``: Pair i is channels i and i + d/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair i is the neighbouring channels 2i and 2i + 1, as in RoPE's paper.
        - ``"interleaved_to_half"``: Pair i is read at channels 2i and 2i + 1, and written at i and i + d/2.
    base : float
        b ("rope_theta" in configurations), above 0.
    rotary_dim : int, optional
        d, the number of channels that rotate, even. None means all D. The exponent of theta has this d, as in GPT-J and
        GPT-NeoX.
    scaling : record of posref.scaling, optional
        A context extension, which changes theta: see `rope_frequencies`. An attention factor multiplies cos and sin.
    length : int or integer array without axes, optional
        The number of tokens in the sequence, cached ones included. Some scalings need it: see `rope_frequencies`.
    inverse : bool
        Apply the transpose: see `apply_rope`. The attention factor of a scaling still multiplies. For "half" and "interleaved"
        this rotates by the negative angle, as NanoChat does.
    lanes : {"leading", "trailing"}
        Which d channels rotate. The channels of pairs are counted from the first that rotates. `apply_rope` names the users.

        - ``"leading"``: The first channels of the head rotate, the rest stay as they are.
        - ``"trailing"``: The last channels of the head rotate, those before them stay as they are.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`; channels that do not rotate are unchanged.

    Raises
    ------
    ValueError
        If `rotary_dim` is odd or larger than D, positions do not broadcast or are half precision, or an option is unknown.

    Notes
    -----
    Gemma 4's proportional rotation takes its pairs from the whole head, and the slow pairs do not rotate. Pass
    `posref.scaling.Proportional` and no `rotary_dim`.

    Channels that do not rotate hold no position. GPT-J rotates 64 of 256. GPT-NeoX rotates a quarter, which its authors found
    the best balance of performance and computing time (arXiv:2204.06745).

    For many calls with the same positions, build the table once: `rope_frequencies`, `rope_table`, then `apply_rope`.

    Examples
    --------
    >>> import numpy as np
    >>> rope(np.asarray([[1.0, 0.0]]), np.asarray([1]), layout="half", base=10000.0).round(4).tolist()
    [[0.5403, 0.8415]]
    """
    check_word("rope", "layout", layout, WORDS)
    check_word("rope", "lanes", lanes, LANES)
    xp = library("rope", x=x, positions=positions)
    check_lanes("rope", "x", x)
    check_positions("rope", "positions", positions)
    check_rows("rope", "positions", tuple(positions.shape), tuple(x.shape[:-1]))
    dim = check_rotated("rope", rotary_dim, x.shape[-1])
    check_scaling("rope", dim, base=base, scaling=scaling, length=length)
    inverse = check_flag("rope", "inverse", inverse)
    inv_freq, factor = rope_frequencies(dim, base=base, scaling=scaling, length=length, xp=number_system(xp))
    cos, sin = rope_table(positions, inv_freq, attention_factor=factor, dtype=wide(x.dtype, xp))
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse, lanes=lanes)
