"""Sinusoidal positions. Source: Vaswani et al., arXiv:1706.03762, section 3.5."""

from typing import Literal, get_args

from posref.absolute.sines import arranged, ladder
from posref.angles import cos_sin
from posref.arrays import DType, cast, namespace, result_dtype
from posref.checks import check_integer, check_positions, check_positive, check_word
from posref.spec import Axes, Flag, Integer, OneOf, Real, encoding
from posref.types import ArrayOf, T

Layout = Literal["interleaved", "sin_cos", "cos_sin"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


@encoding(
    family="absolute",
    source="arXiv:1706.03762, section 3.5",
    models=("Transformer", "Whisper encoder", "M2M100", "Marian", "Pegasus"),
    domains={
        "dim": Integer(2, step=2, usual=64),
        "layout": OneOf(LAYOUTS),
        "base": Real(0, usual=(2, 1e6)),
        "endpoint": Flag(),
    },
    arrays={"positions": Axes("*P", "position")},
    result="*P dim",
    rows="*P",
    requires=("dim >= 4 or not endpoint",),
    invariants=("bounded", "distinct", "linear in PE(p)"),
    rounded=("positions", "result"),
)
def sinusoidal(
    positions: ArrayOf[T],
    dim: int,
    /,
    *,
    layout: Layout,
    base: float = 10000.0,
    endpoint: bool = False,
    dtype: DType | None = None,
) -> T:
    r"""
    Return sines and cosines of every position at geometrically spaced frequencies.

    .. math:: PE_{p,2i} = \sin(p \, b^{-2i/d}), \qquad PE_{p,2i+1} = \cos(p \, b^{-2i/d}), \qquad i = 0 \dots d/2-1

    where p is the position, d the width and b the base. This is `layout` "interleaved". "sin_cos" has sine i in column i and
    cosine i in column d/2 + i; "cos_sin" exchanges the two halves. With `endpoint` the exponent is -i/(d/2 - 1).

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(*P,)``
        p, in tokens.
    dim : int
        d, even, at least 2 (at least 4 with `endpoint`).
    layout : {"interleaved", "sin_cos", "cos_sin"}
        The order of the columns: the paper's, sine and cosine side by side; sines first (tensor2tensor, fairseq, Whisper,
        Marian); cosines first (diffusers with ``flip_sin_to_cos``).
    base : float
        b, above 0; 10000 in the paper.
    endpoint : bool
        False is the paper's text. True makes the last frequency exactly 1/b: tensor2tensor, fairseq, M2M100 and Whisper. The
        first Transformers were trained with True.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*P, d)``
        Between -1 and 1.

    Raises
    ------
    ValueError
        If `dim` is odd or too small, `base` is not positive, `layout` is unknown, or positions are half precision.

    Notes
    -----
    Odd widths are refused, since libraries differ: they pad with zeros (fairseq), truncate, or add a sine (Pegasus).

    Examples
    --------
    >>> import numpy as np
    >>> sinusoidal(np.asarray([0, 1]), 4, layout="sin_cos").round(4).tolist()
    [[0.0, 0.0, 1.0, 1.0], [0.8415, 0.01, 0.5403, 1.0]]
    """
    check_word("sinusoidal", "layout", layout, LAYOUTS)
    check_positions("sinusoidal", "positions", positions)
    base = check_positive("sinusoidal", "base", base)
    _check_width(dim, endpoint)
    xp = namespace(positions)
    steps = dim // 2 - 1 if endpoint else dim // 2
    frequencies = ladder(xp, dim // 2, steps, base)
    dtype = result_dtype(positions, dtype)
    cos, sin = cos_sin(positions, frequencies, dtype=dtype)
    return cast(arranged(sin, cos, layout), dtype)


def _check_width(dim: int, endpoint: bool) -> None:
    """Refuse odd widths, and with `endpoint` also width 2, where the exponent's denominator is zero."""
    dim = check_integer("sinusoidal", "dim", dim, 4 if endpoint else 2, " with endpoint=True" if endpoint else "")
    if dim % 2:
        msg = f"sinusoidal: dim must be even (libraries disagree on odd widths: pad or slice the result); got {dim}."
        raise ValueError(msg)
