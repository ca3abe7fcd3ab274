"""Sinusoids of an image's valid cells. Source: Carion et al., DETR, arXiv:2005.12872, appendix A.4, and the authors' code."""

from math import pi

from posref.absolute.sinusoidal import sinusoidal
from posref.core.arrays import Array, DType, beside, cast, index_dtype, library, namespace, result_dtype, wide, with_axis_moved
from posref.core.checks import check_flag, check_integer, check_positive
from posref.spec import Axes, Flag, Integer, Real, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Sine encoding of masked images (DETR)",
    idea=(
        "Images in a batch are padded to one size. For every cell this counts the valid cells above it and to its left, scales "
        "the counts, and takes their sinusoids: half of the channels tell the row, half the column. Padding does not count."
    ),
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
    read={
        "Deformable DETR": "transformers 5.23.0, models/deformable_detr/modeling_deformable_detr.py:342-416",
        "Mask2Former": "transformers 5.23.0, models/mask2former/modeling_mask2former.py:847-921",
        "SAM 2": "transformers 5.23.0, models/sam2/modeling_sam2.py:139-213",
    },
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
    Return sinusoids of the row and column of every cell of an image. Rows and columns are counted over valid cells.

    .. math:: [PE^{(d/2)}_{v(y)} \,\|\, PE^{(d/2)}_{v(x)}], \qquad v(y) = s \, \frac{y - o}{y_{last} + \epsilon}

    where y counts the valid cells of the column from the first row to this one, both included, and y_last those of the whole
    column. x and x_last count along the row in the same way. o is 1/2 if `centered`, else 0, s is the scale, epsilon is `eps`,
    and PE^(d/2) is `sinusoidal` with width d/2 and layout "interleaved". Without `normalize`, v(y) = y and v(x) = x.

    Parameters
    ----------
    mask : boolean array, shape ``(*B, H, W)``
        True where a cell is valid, as in transformers. In DETR's own code True means padding: pass the inverse.
    dim : int
        d, the width of the result, a multiple of 4. ``num_pos_feats`` in DETR's code is d/2.
    normalize : bool
        True divides by the last count of each column and row (DETR and its successors). False uses the counts themselves.
    centered : bool
        True subtracts half a cell (Deformable DETR); it needs `normalize`. False does not (DETR, Mask2Former, SAM 2, Grounding
        DINO).
    base : float
        10000, or 20 in DAB-DETR and Grounding DINO (``temperature``).
    scale : float
        s, above 0; 2 pi in DETR.
    eps : float
        epsilon, above 0. In float32 the default has no effect where more than 31 cells are valid.
    dtype : data type, optional
        Dtype of the result. None means the library's default real dtype.

    Returns
    -------
    array, shape ``(*B, H, W, d)``
        Between -1 and 1. Libraries put the channels before the rows: move the last axis to compare.

    Raises
    ------
    ValueError
        If `mask` is not boolean or has fewer than two axes, `dim` is not a multiple of 4, or an option is out of
        range.

    Notes
    -----
    Counts start at 1. A padding cell keeps the count of the last valid cell before it. In a column without a valid cell v(y)
    is 0 / epsilon = 0. With `centered` it is minus s / (2 epsilon), 3.1 million radians by default.

    Counts are integers here. transformers casts the mask to the dtype of the model before it counts, which is wrong in bfloat16
    from 257 cells on. The coordinates v are in float32 for results of float32 or narrower, as in all libraries.

    For a different base on each axis (DAB-DETR's code allows it), or for coordinates of boxes, use `sinusoidal_nd`.

    Examples
    --------
    The last column of a 2 by 3 image is padding. This is the cell at row 1, column 0:

    >>> import numpy as np
    >>> mask = np.asarray([[True, True, False]] * 2)
    >>> sine_2d(mask, 8, normalize=True, centered=True)[1, 0].round(4).tolist()
    [-1.0, -0.0, 0.0471, 0.9989, 1.0, 0.0, 0.0157, 0.9999]
    """
    name = "sine_2d"
    xp = library(name, mask=mask)
    if not xp.isdtype(mask.dtype, "bool") or mask.ndim < 2:
        what = f"{mask.dtype}, {tuple(mask.shape)}"
        msg = f"{name}: mask must be boolean with rows and columns, True where a cell is valid; got {what}."
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
        msg = f"{name}: centered must be False without normalize (counts are whole numbers); got True."
        raise ValueError(msg)
    dtype = result_dtype(name, mask, dtype)
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
    """Return the number of valid cells along an axis up to and including each cell."""
    xp = namespace(mask)
    one = beside(1, mask, index_dtype(mask))
    valid = with_axis_moved(xp.where(mask, one, one - one), axis, 0)
    counts = [valid[:1, ...]]
    for n in range(1, valid.shape[0]):
        counts.append(counts[-1] + valid[n : n + 1, ...])
    return with_axis_moved(xp.concat(counts, axis=0), 0, axis)


@part()
def normalized_counts(places: Array, axis: int, *, offset: float, scale: float, eps: float) -> Array:
    """Return counts minus an offset, divided by the last count plus eps, times the scale."""
    last = places[..., -1:, :] if axis == -2 else places[..., -1:]
    return (places - offset) / (last + float(eps)) * float(scale)
