"""Rotation by angles that depend on the text. Sources: Mamba-3, arXiv:2603.15569; Selective RoPE, arXiv:2511.17388."""

from posref.core.angles import angle_dtype, cos_sin_of_pairs, cos_sin_of_running_sums
from posref.core.arrays import beside, has_float64, library
from posref.core.checks import check_flag, check_lanes, check_rows, check_word
from posref.rotary.apply_rope import LANES, WORDS, apply_rope
from posref.rotary.cumulative_angles import check_increments, cumulative_angles
from posref.spec import Axes, Flag, OneOf, encoding
from posref.types import ArrayOf, Lanes, Layout, T


@encoding(
    title="Rotation by cumulative angles (Mamba-3, Selective RoPE)",
    idea=(
        "Channel pairs rotate as in RoPE, but the angle of a token is the sum of increments that the model computed from all "
        "tokens so far. Between two tokens, attention sees the sum of the increments between them, whatever their distance."
    ),
    family="rotary",
    source="arXiv:2603.15569, section 3.2",
    models=("Mamba-3", "Selective RoPE"),
    domains={"layout": OneOf(WORDS), "inverse": Flag(), "lanes": OneOf(LANES)},
    arrays={
        "x": Axes("*R T 2*n+tail | *R T 2*n+tail | B H T 2*n+tail"),
        "increments": Axes("*R T n | T n | B 1 T n", "wide", usual=(-1.0, 1.0)),
        "start": Axes("*R n | n | B 1 n", "wide", usual=(-3.0, 3.0)),
    },
    result="=x",
    rows="*R B H",
    requires=("H > 1",),
    read={
        "Mamba-3": (
            "state-spaces/mamba@e9594ce, mamba_ssm/modules/mamba3.py:98-104, 363-368; "
            "mamba_ssm/ops/triton/mamba3/mamba3_siso_fwd.py:327-350; "
            "mamba_ssm/ops/triton/mamba3/mamba3_mimo_rotary_step.py:65-118"
        ),
        "Selective RoPE": "timurcarstensen/selective-rope@d12e825, src/selective_rope/modules/rotary.py:298-318",
    },
)
def cumulative_rope(
    x: ArrayOf[T],
    increments: ArrayOf[T],
    start: ArrayOf[T],
    /,
    *,
    layout: Layout,
    inverse: bool = False,
    lanes: Lanes = "leading",
) -> T:
    r"""
    Return `x` with every channel pair rotated by the sum of the increments up to its token.

    .. math:: y_u = x_u \cos \varphi_{t,i} - x_v \sin \varphi_{t,i}, \qquad
        y_v = x_v \cos \varphi_{t,i} + x_u \sin \varphi_{t,i}, \qquad \varphi_{t,i} = s_i + \sum_{l=0}^{t} \delta_{l,i}

    Pair i < n is the two channels u and v that `layout` names, t is the token, :math:`\delta` are the increments and s are the
    angles before the first token.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, T, D)``
        Queries or keys: in Mamba-3 C or B, after its bias is added. The axis of tokens is the last but one.
    increments : array, at least float32, shape ``(*F, T, n)``, 2 n <= D
        In radians, in the order of the text: see `cumulative_angles`. F is R, or nothing; or it has an axis of size 1 where all
        heads share increments, as in (B, 1, T, n) for x of (B, H, T, D).
    start : array, at least float32, shape ``(*F, n)``
        The angles before the first token, in radians: zeros, or the last angles of the chunk before.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair i, counted from the first channel that rotates. `apply_rope` names the users of the layouts
        in RoPE. Mamba-3 has "interleaved" in its form with one input (SISO), and "half" in that with several (MIMO), where u
        and v are D/2 apart also if fewer pairs rotate: give the others increments of 0. Selective RoPE has "half".

        - ``"half"``: Pair i is channels i and i + n. Used by Selective RoPE.
        - ``"interleaved"``: Pair i is the neighbouring channels 2i and 2i + 1. Used by Mamba-3.
        - ``"interleaved_to_half"``: Pair i is read at channels 2i and 2i + 1, and written at i and i + n.
    inverse : bool
        Rotate back, by the negative angles.
    lanes : {"leading", "trailing"}
        Which 2 n of the D channels rotate.

        - ``"leading"``: The first channels of the head rotate, the rest stay as they are. Used by Mamba-3.
        - ``"trailing"``: The last channels of the head rotate, those before them stay as they are.

    Returns
    -------
    array, shape ``(*R, T, D)``
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If an option is unknown, x is not real floating, or increments and start are narrower than float32, or do not fit each
        other or x.

    Notes
    -----
    For angles that are given, without a sum, use `apply_rope` with their cosines and sines.

    Examples
    --------
    >>> import numpy as np
    >>> x, quarter = np.asarray([[1.0, 2.0], [1.0, 2.0]]), np.full((2, 1), np.pi / 2)
    >>> cumulative_rope(x, quarter, np.zeros(1), layout="half").round(4).tolist()
    [[-2.0, 1.0], [-1.0, -2.0]]
    """
    name = "cumulative_rope"
    check_word(name, "layout", layout, WORDS)
    check_word(name, "lanes", lanes, LANES)
    inverse = check_flag(name, "inverse", inverse)
    library(name, x=x, increments=increments, start=start)
    check_lanes(name, "x", x)
    if x.ndim < 2:
        msg = f"{name}: x must be (..., tokens, channels); got shape {tuple(x.shape)}."
        raise ValueError(msg)
    check_increments(name, increments, start)
    if 2 * increments.shape[-1] > x.shape[-1]:
        msg = (
            f"{name}: increments must have at most {x.shape[-1] // 2} pairs (half the last axis of x); got "
            f"{increments.shape[-1]}."
        )
        raise ValueError(msg)
    rows = tuple(x.shape[:-1])
    if increments.shape[-2] != rows[-1]:
        msg = f"{name}: increments must have an increment for each of the {rows[-1]} tokens of x; got {increments.shape[-2]}."
        raise ValueError(msg)
    check_rows(name, "increments", tuple(increments.shape[:-1]), rows)
    if has_float64(increments):
        angles = cumulative_angles(increments, start, dtype=angle_dtype(increments))
        one = beside([1.0] * increments.shape[-1], increments, angles.dtype)
        cos, sin = cos_sin_of_pairs(angles, one, dtype=x.dtype)
    else:  # an angle that is held in float32 is not accurate
        cos, sin = cos_sin_of_running_sums(increments, start, dtype=x.dtype)
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse, lanes=lanes)
