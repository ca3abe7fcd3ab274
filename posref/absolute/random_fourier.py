"""Random Fourier features. Source: Tancik et al., arXiv:2006.10739, section 4."""

from typing import Literal, get_args

from posref.absolute.sines import arranged
from posref.core.angles import cos_sin_of_half_turns
from posref.core.arrays import DType, cast, library, result_dtype, wide, with_axis_moved
from posref.core.checks import check_frequencies, check_positions, check_word
from posref.spec import Axes, OneOf, encoding
from posref.types import AnyArray, ArrayOf, T

Layout = Literal["sin_cos", "cos_sin"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


@encoding(
    title="Random Fourier features",
    idea=(
        "A point is multiplied by a random matrix that never changes, and sines and cosines are taken of the result. Each "
        "column is a wave in some random direction. Together they tell points apart; the size of the random numbers sets how "
        "finely."
    ),
    family="absolute",
    source="arXiv:2006.10739, section 4",
    models=("SAM", "SAM 2", "NCSN++"),
    domains={"layout": OneOf(LAYOUTS)},
    arrays={"x": Axes("*P c", "position"), "matrix": Axes("c m", "wide")},
    result="*P 2*m",
    rows="*P",
    rounded=("matrix",),
    read={
        "SAM": "transformers 5.23.0, models/sam/modeling_sam.py:546-566",
        "score SDE": "yang-song/score_sde@0acb9e0, models/layerspp.py:33-43",
        "Tancik et al.'s formula": "tancik/fourier-feature-networks@9c110c3, Demo.ipynb:210",
        "Tancik et al.'s code": "tancik/fourier-feature-networks@9c110c3, Demo.ipynb:136-141",
        "diffusers": (
            "diffusers 0.42.1, diffusers/models/embeddings.py:1112-1122; diffusers/models/unets/unet_2d.py:147; "
            "diffusers/models/unets/unet_1d.py:106-108; diffusers/models/unets/unet_2d_condition.py:562-564; "
            "diffusers/models/transformers/stable_audio_transformer.py:229-234"
        ),
        "SAM 2": "transformers 5.23.0, models/sam2/modeling_sam2.py:727-749",
        "NCSN++": "yang-song/score_sde@0acb9e0, models/ncsnpp.py:72-77; models/layerspp.py:33-43",
    },
)
def random_fourier(x: ArrayOf[T], matrix: AnyArray, /, *, layout: Layout, dtype: DType | None = None) -> T:
    r"""
    Return sines and cosines of random projections of every point.

    .. math:: [\sin(2 \pi \, x B), \; \cos(2 \pi \, x B)]

    where x is a point and B a matrix. Its entries are drawn once from a normal distribution and saved with the weights. The
    larger their standard deviation, the finer the details that the features can distinguish.

    Parameters
    ----------
    x : array, integer or at least float32, shape ``(*P, c)``
        The c coordinates of every point. A single number, such as a noise level, has c = 1.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    matrix : array, at least float32, shape ``(c, m)``
        B, drawn once. A NumPy array, or an array of the same library as `x`.
    layout : {"sin_cos", "cos_sin"}
        The order of the columns.

        - ``"sin_cos"``: The first half holds all sines, the second all cosines. Used by SAM, score SDE,
          Tancik et al.'s code.
        - ``"cos_sin"``: The first half holds all cosines, the second all sines. Used by Tancik et al.'s
          formula.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating `x`, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*P, 2 m)``
        Between -1 and 1.

    Raises
    ------
    ValueError
        If `x` or `matrix` are half precision, shapes do not fit, or `layout` is unknown.

    Notes
    -----
    SAM's points are 2 u - 1, with u from 0 to 1 and the horizontal coordinate first. On a grid u is (i + 1/2) / n; for prompts,
    SAM adds half a pixel. Score SDE passes the logarithm of the noise level. diffusers' `GaussianFourierProjection` takes the
    logarithm itself with ``log=True`` (UNet2DModel), not in UNet1DModel, UNet2DConditionModel or Stable Audio.

    Examples
    --------
    SAM's encoding of a point a quarter along the width and half along the height:

    >>> import numpy as np
    >>> x, matrix = 2 * np.asarray([0.25, 0.5]) - 1, np.asarray([[0.5, -0.25], [1.0, 0.75]])
    >>> random_fourier(x, matrix, layout="sin_cos").round(4).tolist()
    [-1.0, 0.7071, 0.0, 0.7071]
    """
    name = "random_fourier"
    check_word(name, "layout", layout, LAYOUTS)
    check_positions(name, "x", x)
    check_frequencies(name, "matrix", matrix)
    if x.ndim < 1 or len(matrix.shape) != 2 or matrix.shape[0] != x.shape[-1]:
        got = f"{tuple(x.shape)} and {tuple(matrix.shape)}"
        msg = f"{name}: x must be (..., c), and matrix (c, m); got shapes {got}."
        raise ValueError(msg)
    dtype = result_dtype(name, x, dtype)
    xp = library(name, matrix=matrix)
    rows = xp.reshape(cast(matrix, wide(matrix.dtype, xp)), (matrix.shape[0], *(1,) * (x.ndim - 1), matrix.shape[1]))
    cos, sin = cos_sin_of_half_turns(with_axis_moved(x, -1, 0)[..., None], rows * 2, dtype=dtype)
    return cast(arranged(sin, cos, layout), dtype)
