"""Log-spaced coordinates of Swin v2. Source: Liu et al., arXiv:2111.09883, section 3.3, equation (4), and the authors' code."""

from typing import Any

from posref.core.arrays import Array, beside, cast, library, namespace, result_dtype, wide
from posref.core.checks import check_integer, check_positions
from posref.spec import Axes, Integer, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Log-spaced coordinates (Swin v2)",
    idea=(
        "A network that has seen offsets up to 7 is used with offsets up to 15. On a logarithmic scale that is only a little "
        "beyond what it knows. So the logarithm of the offset, with its sign, is the network's input."
    ),
    family="bias",
    source="arXiv:2111.09883, equation (4)",
    models=("Swin v2", "Swin2SR", "MaxViT (timm)"),
    domains={"window": Integer(1, optional=True, usual=24)},
    arrays={"offsets": Axes("*P", "position")},
    result="*P",
    rows="*P",
    noun="coordinates",
    read={
        "timm": "timm 1.0.31, timm/layers/pos_embed_rel.py:404-417",
        "x-transformers": "x-transformers 2.31.10, x_transformers/x_transformers.py:620-621",
        "the authors' code": "microsoft/Swin-Transformer@f82860b, models/swin_transformer_v2.py:103-111",
        "transformers": "transformers 5.23.0, models/swinv2/modeling_swinv2.py:467-476",
    },
)
def log_spaced_coordinates(offsets: ArrayOf[T], /, *, window: int | None, dtype: Any = None) -> T:
    r"""
    Return the coordinates of offsets between two cells of a window, on a logarithmic scale.

    .. math:: c(\Delta) = \operatorname{sign}(\Delta) \, \frac{\log_2(1 + |u|)}{\log_2 8}, \qquad u = \frac{8 \Delta}{w - 1}

    with w = `window`. With `window` None it is :math:`\operatorname{sign}(\Delta) \ln(1 + |\Delta|)`.

    Parameters
    ----------
    offsets : array, integer or at least float32, any shape
        Δ, row of the query minus row of the key, or column minus column, in cells.
    window : int or None
        w, the rows or columns of the window in which the network was trained, at least 1. For 1, u is 8Δ. None: the natural
        logarithm of the offset itself, as in timm's mode "cr" and x-transformers' ``log_distance``.
    dtype : dtype or None
        Of the result. By default the dtype of `offsets` if it is floating, else the library's default.

    Returns
    -------
    array, shape of `offsets`
        With `window`, within 1.06 for the offsets of that window. Offset 0 has coordinate 0.

    Raises
    ------
    ValueError
        If offsets are half precision, or `window` is less than 1.

    Notes
    -----
    The paper's equation (4) has the natural logarithm of 1 + abs(Δ) alone. The formula above is from the authors' code. It
    divides by w - 1 = 0 for a window of 1, as timm's and transformers' do; but transformers does not divide by the model's own
    window, if that has one row.

    Examples
    --------
    >>> import numpy as np
    >>> log_spaced_coordinates(np.asarray([-7, -1, 0, 1, 7]), window=8).round(4).tolist()
    [-1.0566, -0.3665, 0.0, 0.3665, 1.0566]
    >>> log_spaced_coordinates(np.asarray([-1, 2]), window=None).round(4).tolist()
    [-0.6931, 1.0986]
    """
    name = "log_spaced_coordinates"
    check_positions(name, "offsets", offsets)
    xp = library(name, offsets=offsets)
    dtype = result_dtype(name, offsets, dtype)
    x = cast(offsets, wide(dtype, xp))
    if window is None:
        return cast(signed_logarithm(x), dtype)
    window = check_integer(name, "window", window, 1)
    return cast(signed_logarithm(x * 8.0 / float(max(window - 1, 1))) / xp.log(beside(8.0, x, x.dtype)), dtype)


@part()
def signed_logarithm(x: Array, /) -> Array:
    """Return the natural logarithm of 1 + abs(x), with the sign of x."""
    xp = namespace(x)
    size = xp.log(xp.abs(x) + 1.0)
    return xp.where(x < 0, -size, size)
