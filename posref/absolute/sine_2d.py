"""Sinusoids of an image's valid cells. Source: Carion et al., DETR, arXiv:2005.12872, appendix A.4, and the authors' code."""

from math import pi

from posref.absolute.sinusoidal import sinusoidal
from posref.arrays import Array, DType, beside, cast, index_dtype, namespace, result_dtype, wide
from posref.checks import check_flag, check_integer, check_positive
from posref.spec import Axes, Flag, Integer, Real, encoding, part
from posref.types import ArrayOf, T


@encoding(
    family="absolute",
    source="arXiv:2005.12872, appendix A.4",
    models=("DETR", "Deformable DETR", "DAB-DETR", "Mask2Former", "SAM 2"),
    domains={
        "dim": Integer(4, step=4, usual=32),
        "normalize": Flag(),
        "centered": Flag(),
        "base": Real(0, usual=(2, 1e5)),
        "scale": Real(0, usual=(1, 8)),
        "eps": Real(0, usual=(1e-6, 1e-2)),
    },
    arrays={"mask": Axes("*B H W", "mask")},
    result="*B H W dim",
    requires=("normalize or not centered",),
)
def sine_2d(
    mask: ArrayOf[T],
    dim: int,
    /,
    *,
    normalize: bool,
    centered: bool,
    base: float = 10000.0,
    scale: float = 2 * pi,
    eps: float = 1e-6,
    dtype: DType | None = None,
) -> T:
    r"""
    Return sinusoids of the row and the column of every cell of an image, counted over its valid cells.

    .. math:: [PE^{(d/2)}_{v(y)} \,\|\, PE^{(d/2)}_{v(x)}], \qquad v(y) = s \, \frac{y - o}{y_{last} + \epsilon}

    where y is the number of valid cells of the column from the first row to this one, both included, y_last that of the whole
    column, x and x_last the same along the row, o 1/2 if `centered`, else 0, s the scale, and PE the interleaved `sinusoidal`
    of width d/2.
    Without `normalize`, v(y) = y.

    Parameters
    ----------
    mask : boolean array, shape ``(*B, H, W)``
        True where a cell is valid, as in transformers. DETR's own code has True where it is padding: give its inverse.
    dim : int
        d, the width for both axes, a multiple of 4; ``num_pos_feats`` of DETR's code is d/2.
    normalize : bool
        Divide by the last count of each column and row (DETR and its relatives), or use the counts themselves.
    centered : bool
        Subtract half a cell (Deformable DETR), or not (DETR, Mask2Former, SAM 2, Grounding DINO). Only with `normalize`.
    base : float
        10000, or 20 in DAB-DETR and Grounding DINO (``temperature``).
    scale : float
        s, above 0.
    eps : float
        epsilon, above 0. In float32 it has no effect where more than 31 cells are valid.
    dtype : data type, optional
        Dtype of the result. None means the library's default real dtype.

    Returns
    -------
    array, shape ``(*B, H, W, d)``
        Between -1 and 1. Libraries have the channels before the rows: move the last axis.

    Raises
    ------
    ValueError
        If `mask` is not boolean or has fewer than two axes, `dim` is no multiple of 4, or an option is out of range.

    Notes
    -----
    Counts begin at 1. Cells of padding keep the last count before them. A column without a valid cell is at 0 / epsilon: 0
    as it is, and minus half a scale divided by epsilon, 3.1 million radians, if `centered`.

    Counts are integers here. transformers casts the mask to the dtype of the model before it counts: wrong from 257 cells on
    in bfloat16. The coordinates v are in float32 for results of float32 or narrower, as in all libraries.

    For other bases for each axis (DAB-DETR's code allows them) or coordinates of boxes, use `sinusoidal_nd`.

    Examples
    --------
    The last column of a 2 by 3 image is padding; the cell at row 1, column 0:

    >>> import numpy as np
    >>> mask = np.asarray([[True, True, False]] * 2)
    >>> sine_2d(mask, 8, normalize=True, centered=True)[1, 0].round(4).tolist()
    [-1.0, -0.0, 0.0471, 0.9989, 1.0, 0.0, 0.0157, 0.9999]
    """
    name = "sine_2d"
    xp = namespace(mask)
    if not xp.isdtype(mask.dtype, "bool") or mask.ndim < 2:
        found = f"{mask.dtype}, {tuple(mask.shape)}"
        msg = f"{name}: mask must be boolean with rows and columns, True where a cell is valid; got {found}."
        raise ValueError(msg)
    dim = check_integer(name, "dim", dim, 4)
    if dim % 4:
        msg = f"{name}: dim must be a multiple of 4 (a sine and a cosine for each axis); got {dim}."
        raise ValueError(msg)
    normalize = check_flag(name, "normalize", normalize)
    centered = check_flag(name, "centered", centered)
    base, scale = check_positive(name, "base", base), check_positive(name, "scale", scale)
    eps = check_positive(name, "eps", eps)
    if centered and not normalize:
        msg = f"{name}: centered must be False without normalize, since counts are whole; got True."
        raise ValueError(msg)
    dtype = result_dtype(mask, dtype)
    blocks = []
    for axis in (-2, -1):
        places = valid_counts(mask, axis)
        if normalize:
            places = normalized_counts(
                cast(places, wide(dtype, xp)), axis, offset=0.5 if centered else 0.0, scale=scale, eps=eps
            )
        blocks.append(sinusoidal(places, dim // 2, layout="interleaved", base=base, dtype=dtype))
    return xp.concat(blocks, axis=mask.ndim)


@part()
def valid_counts(mask: Array, axis: int) -> Array:
    """Return how many cells are valid up to each cell along an axis, itself included."""
    xp = namespace(mask)
    one = beside(1, mask, index_dtype(mask))
    valid = xp.moveaxis(xp.where(mask, one, one - one), axis, 0)
    found = [valid[:1, ...]]
    for n in range(1, valid.shape[0]):
        found.append(found[-1] + valid[n : n + 1, ...])
    return xp.moveaxis(xp.concat(found, axis=0), 0, axis)


@part()
def normalized_counts(places: Array, axis: int, *, offset: float, scale: float, eps: float) -> Array:
    """Return counts less an offset, divided by the last of them."""
    last = places[..., -1:, :] if axis == -2 else places[..., -1:]
    return (places - offset) / (last + float(eps)) * float(scale)
