"""Angles that depend on the text: running sums. Sources: Mamba-3, arXiv:2603.15569; Selective RoPE, arXiv:2511.17388."""

from posref.core.angles import running_sums
from posref.core.arrays import Array, DType, cast, library, result_dtype
from posref.core.checks import check_frequencies
from posref.spec import Axes, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Cumulative angles (Mamba-3, Selective RoPE)",
    idea=(
        "In RoPE the angle grows by the same amount from token to token. Here each token says how much: a model computes the "
        "increment from the token's content, and the angle is the sum of all increments so far. So distance is measured in "
        "content, not in tokens."
    ),
    family="rotary",
    source="arXiv:2603.15569, section 3.2",
    models=("Mamba-3", "Selective RoPE"),
    arrays={
        "increments": Axes("*B T n", "wide", usual=(-1.0, 1.0)),
        "start": Axes("*B n", "wide", usual=(-3.0, 3.0)),
    },
    result="*B T n",
    rows="*B n",
    sums=True,
)
def cumulative_angles(increments: ArrayOf[T], start: ArrayOf[T], /, *, dtype: DType | None = None) -> T:
    r"""
    Return the angle of every token and channel pair: the sum of the increments up to the token, itself included.

    .. math:: \varphi_{t,i} = s_i + \sum_{l=0}^{t} \delta_{l,i}

    where :math:`\delta_{l,i}` is the increment of token l for pair i, and :math:`s_i` is the angle before the first token.

    Parameters
    ----------
    increments : array, at least float32, shape ``(*B, T, n)``
        In radians, for n channel pairs, of tokens in the order of the text. Give padding tokens 0. Mamba-3 computes
        ``pi * tanh(a) * step``, with a of every token and pair, and a step above 0 of every token and head. Selective RoPE
        computes a short convolution of the queries' or keys' projections, times a frequency for each pair.
    start : array, at least float32, shape ``(*B, n)``
        s, in radians: zeros at the start of a text; in a decode step or a later chunk, the last angles of the tokens before.
    dtype : data type, optional
        Dtype of the result. None means the dtype of `increments`.

    Returns
    -------
    array, shape ``(*B, T, n)``
        In radians. The last row is `start` of the next chunk. To rotate by it, see `cumulative_rope`.

    Raises
    ------
    ValueError
        If an array is not at least float32, `increments` has fewer than two axes, or `start` does not have its shape without
        the axis of tokens.

    Notes
    -----
    The sums are in float64, or exact in integers if the library has no float64; then a call has at most 2^20 tokens. Most code
    adds in float32. In bfloat16 an angle past 256 radians loses whole radians.

    Mamba-3's kernel for chunks (mamba_ssm/ops/triton/mamba3/angle_dt.py) takes angles modulo 2 pi, in float32; its decode step
    (mamba3_mimo_rotary_step.py) does not. The sum here is whole. Compare code that takes it modulo 2 pi through
    `cumulative_rope`: the rotation is the same, but for the rounding, up to 7e-5 at 1000 radians.

    Examples
    --------
    >>> import numpy as np
    >>> cumulative_angles(np.asarray([[0.5], [-0.25], [1.0]]), np.asarray([2.0])).tolist()
    [[2.5], [2.25], [3.25]]
    """
    name = "cumulative_angles"
    library(name, increments=increments, start=start)
    check_increments(name, increments, start)
    return cast(running_angles(increments, start), result_dtype(name, increments, dtype))


def check_increments(name: str, increments: Array, start: Array) -> None:
    """Raise if increments and the angles before them are narrow, or do not fit."""
    check_frequencies(name, "increments", increments)
    check_frequencies(name, "start", start)
    shape = tuple(increments.shape)
    if len(shape) < 2 or tuple(start.shape) != (*shape[:-2], *shape[-1:]):
        msg = (
            f"{name}: increments must be (..., tokens, pairs), and start the same without tokens; got {shape} and "
            f"{tuple(start.shape)}. Pass zeros at the start of a text."
        )
        raise ValueError(msg)


@part()
def running_angles(increments: Array, start: Array, /) -> Array:
    """Return the sums of all increments up to each token, from the angles before the first one."""
    return running_sums(increments, start)
