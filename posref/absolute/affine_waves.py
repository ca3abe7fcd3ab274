"""Cosines or sines of an affine function of time. Sources: TGAT, Xu et al., arXiv:2002.07962; TGN, arXiv:2006.10637."""

from typing import Literal, get_args

from posref.core.angles import cos_sin_of_pairs
from posref.core.arrays import DType, cast, library, result_dtype
from posref.core.checks import check_frequencies, check_positions, check_word
from posref.spec import Axes, OneOf, encoding
from posref.types import ArrayOf, T

Wave = Literal["cos", "sin"]
WAVES: tuple[Wave, ...] = get_args(Wave)


@encoding(
    title="Learned time waves (TGN, TGAT, Time2Vec)",
    idea=(
        "Events have a time, not a place in a row. The time is multiplied by learned frequencies, phases are added, and "
        "the cosine of each is a channel. So a model of changing graphs finds its own periods, such as days and weeks."
    ),
    family="absolute",
    source="arXiv:2006.10637, section 3.1; arXiv:2002.07962",
    models=("TGN", "TGAT", "Time2Vec"),
    domains={"wave": OneOf(WAVES)},
    arrays={"x": Axes("*P", "position"), "weight": Axes("m", "wide"), "bias": Axes("m", "wide")},
    result="*P m",
    rows="*P",
    rounded=("weight",),
    read={
        "TGN": "twitter-research/tgn@d55bbe6, model/time_encoding.py:5-25",
        "TGAT": "StatsDLMathsRecomSys/Inductive-representation-learning-on-temporal-graphs@66b2ccd, module.py:197-222",
        "PyG's TimeEncoder": "torch-geometric 2.8.1, torch_geometric/nn/models/tgn.py:215-225",
        "Time2Vec": "arXiv:1907.05321, section 4",
    },
)
def affine_waves(x: ArrayOf[T], weight: ArrayOf[T], bias: ArrayOf[T], /, *, wave: Wave, dtype: DType | None = None) -> T:
    r"""
    Return the cosine or the sine of every time, multiplied by learned frequencies, plus learned phases.

    .. math:: E_{t,n} = \cos(w_n \, t + b_n)

    or the sine, where t is a time and w and b are `weight` and `bias`.

    Parameters
    ----------
    x : array, integer or at least float32, any shape ``(*P)``
        t, times or differences of times, in the caller's unit.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    weight : array, at least float32, shape ``(m,)``
        w, learned, in radians per unit of time. PyTorch's linear layer stores it as ``(m, 1)``.
    bias : array, at least float32, shape ``(m,)``
        b, learned, in radians.
    wave : {"cos", "sin"}
        Which function.

        - ``"cos"``: The cosine of each angle. Used by TGN, TGAT, PyG's TimeEncoder.
        - ``"sin"``: The sine of each angle. Used by Time2Vec.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating `x`, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*P, m)``
        Between -1 and 1.

    Raises
    ------
    ValueError
        If `wave` is unknown, `x`, `weight` or `bias` are half precision, or shapes do not fit.

    Notes
    -----
    Most code multiplies in float32. Times in seconds since 1970 then lose up to 64 seconds each: pass differences, as TGN does.
    Time2Vec also has a channel that is linear in time, w t + b, before the sines. AlphaFold 3's embedding of the noise level,
    cos(2 pi (w t + b)), is `random_fourier` of the point (t, 1).

    Examples
    --------
    >>> import numpy as np
    >>> w, b = np.asarray([1.0, 0.1, 0.01]), np.asarray([0.0, 0.5, -0.5])
    >>> affine_waves(np.asarray(30.0), w, b, wave="cos").round(4).tolist()
    [0.1543, -0.9365, 0.9801]
    """
    name = "affine_waves"
    check_word(name, "wave", wave, WAVES)
    check_positions(name, "x", x)
    check_frequencies(name, "weight", weight)
    check_frequencies(name, "bias", bias)
    library(name, x=x, weight=weight, bias=bias)
    if weight.ndim != 1 or tuple(weight.shape) != tuple(bias.shape):
        msg = f"{name}: weight and bias must both be (m,); got {tuple(weight.shape)} and {tuple(bias.shape)}."
        raise ValueError(msg)
    dtype = result_dtype(name, x, dtype)
    cos, sin = cos_sin_of_pairs(x[..., None], weight, dtype=dtype, phases=bias)
    return cast(cos if wave == "cos" else sin, dtype)
