"""Learned positions on another grid. Source: ViT, arXiv:2010.11929, section 3.2; Keys, doi:10.1109/TASSP.1981.1163711."""

from collections.abc import Sequence
from math import prod
from typing import Literal, get_args

from posref.core.arrays import Array, Namespace, beside, cast, constants, library, number_system, wide, with_axis_moved
from posref.core.checks import check_flag, check_integer, check_integers, check_positive, check_real, check_word
from posref.core.products import matmul
from posref.spec import Axes, Flag, Integer, Integers, OneOf, Real, encoding, part
from posref.types import T

Method = Literal["linear", "cubic"]
METHODS: tuple[Method, ...] = get_args(Method)
Boundary = Literal["border", "zeros"]
BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)
REACH = 2  # cells beyond the border that the cubic kernel reads


@encoding(
    title="Interpolation of position embeddings",
    idea=(
        "A vision model trained on 14 by 14 patches has 196 learned position vectors. For an image of 20 by 20 patches, the "
        "table is enlarged as if it were a picture. Libraries interpolate differently, and so give the model different "
        "vectors."
    ),
    tool=True,
    family="absolute",
    source="arXiv:2010.11929, section 3.2",
    models=("ViT", "DINOv2", "SigLIP 2", "Qwen3-VL", "Kimi K2.5", "SAM"),
    domains={
        "size": Integers(1),
        "old_size": Integers(1),
        "prefix": Integer(0, usual=5),
        "method": OneOf(METHODS),
        "align_corners": Flag(),
        "antialias": Flag(),
        "interpolate_offset": Real(0, optional=True, usual=(0.1, 0.9)),
        "boundary": OneOf(BOUNDARIES),
    },
    arrays={"table": Axes("prefix+prod(old_size) d")},
    result="prefix+prod(size) d",
    requires=(
        "len(size) == len(old_size)",
        "interpolate_offset is None or (interpolate_offset < 1 and not align_corners)",
        "boundary == 'border' or not antialias",
    ),
    invariants=("prefix kept", "same size is the identity", "transposes"),
    sums=True,
    read={
        "ViT, CLIP and SigLIP in transformers": (
            "transformers 5.23.0, models/vit/modeling_vit.py:89-127; transformers 5.23.0, "
            "models/clip/modeling_clip.py:161-200; transformers 5.23.0, models/siglip/modeling_siglip.py:137-173"
        ),
        "DINOv2": "transformers 5.23.0, models/dinov2/modeling_dinov2.py:87-123",
        "SigLIP 2": "transformers 5.23.0, models/siglip2/modeling_siglip2.py:131-190",
        "SAM's relative tables": "transformers 5.23.0, models/sam/modeling_sam.py:729-759",
        "open_clip": "mlfoundations/open_clip@89fb801, src/open_clip/model.py:790",
        "Qwen3-VL": "transformers 5.23.0, models/qwen3_vl/modeling_qwen3_vl.py:638",
        "PaddleOCR-VL": "transformers 5.23.0, models/paddleocr_vl/modeling_paddleocr_vl.py:590",
        "timm": "huggingface/pytorch-image-models@aa4b5850, timm/layers/pos_embed.py:19-48",
        "Kimi K2.5": "transformers 5.23.0, models/kimi_k25/modeling_kimi_k25.py:129, 148-154",
        "Muse Spark": "transformers 5.23.0, models/muse_spark/modeling_muse_spark.py:689-692, 709-720",
    },
)
def resample(
    table: T,
    size: Sequence[int],
    /,
    *,
    old_size: Sequence[int],
    prefix: int,
    method: Method,
    align_corners: bool,
    antialias: bool,
    interpolate_offset: float | None = None,
    boundary: Boundary = "border",
) -> T:
    r"""
    Return a learned position table, interpolated from one grid of cells to another.

    Each axis is resampled on its own. With n old cells and m new ones, new cell i is

    .. math:: \sum_t \frac{K(|t - x_i| / S)}{Z_i} \, E_t, \qquad x_i = s \, (i + 1/2) - 1/2, \qquad s = n / m

    where :math:`E_t` is old cell t, S = 1 and Z = 1. The kernel K(r) is :math:`\max(1 - r, 0)` for "linear". For "cubic" it is
    Keys' kernel with a = -0.75,

    .. math:: K(r) = (a + 2) r^3 - (a + 3) r^2 + 1 \; (r \le 1), \qquad a \, (r^3 - 5 r^2 + 8 r - 4) \; (1 < r < 2)

    and 0 beyond. A t outside the grid reads the cell at the border. `antialias` widens the kernel where the grid shrinks,
    :math:`S = \max(s, 1)`. It also drops cells outside the grid, divides by :math:`Z_i`, the sum of the remaining weights,
    and sets a = -0.5. So with "cubic" it also changes the result where the grid grows.

    Parameters
    ----------
    table : array, real floating, shape ``(prefix + N, d)``
        The learned rows: first `prefix` rows for tokens outside the grid, then N rows for the old cells. The last axis of the
        grid varies fastest.
    size : sequence of A ints
        m, the new number of cells along each axis, such as (height, width). Each is at least 1.
    old_size : sequence of A ints
        n, the old number of cells along each axis. The product is N. For images most libraries take the square root of N twice.
    prefix : int
        How many rows to keep unchanged: 0 (SigLIP, Qwen3-VL), 1 for a class token (ViT, DINOv2), 2 (DeiT).
    method : {"linear", "cubic"}
        - ``"linear"``: Each new cell is a weighted mean of the nearest old ones, bilinear over two axes. Used by SigLIP 2,
          Qwen3-VL, PaddleOCR-VL, SAM's relative tables.
        - ``"cubic"``: Each new cell is a smooth mixture of some more old ones, bicubic over two axes. Used by ViT, CLIP and
          SigLIP in transformers; DINOv2; timm; open_clip; Kimi K2.5.
    align_corners : bool
        True makes :math:`s = (n - 1) / (m - 1)` (0 if m is 1), and without `antialias` :math:`x_i = s i`: the first and last
        cells stay where they are (Qwen3-VL, and Google's ViT). With `antialias`, x keeps the formula above, as in PyTorch,
        so the corners move.
    antialias : bool
        True in timm, open_clip, SigLIP 2 and the DINOv2 models with registers. JAX's `image.resize` has it by default.
    interpolate_offset : float, optional
        o, above 0 and below 1, only without `align_corners`. DINO and DINOv2 add 0.1 to the new size and pass PyTorch a scale
        factor, so that :math:`s = n / (m + o)`. Then an axis is shifted even where m = n. None adds nothing, as in
        transformers' DINOv2.
    boundary : {"border", "zeros"}
        What the kernel reads outside the grid. "zeros" goes only without `antialias`.

        - ``"border"``: Where the kernel reaches beyond the grid, it reads the cell at the border.
        - ``"zeros"``: Where the kernel reaches beyond the grid, it reads 0. Used by Muse Spark.

    Returns
    -------
    array, shape ``(prefix + M, d)``
        In the dtype of `table`; M is the product of `size`. The prefix is kept bit for bit.

    Raises
    ------
    ValueError
        If `table` is not 2-D and real floating, or does not have ``prefix + N`` rows; if a size is below 1, or `size` and
        `old_size` differ in length; if an option is unknown or out of range, or not allowed with another.

    Notes
    -----
    This is ``torch.nn.functional.interpolate`` applied to the table as an image, with ``size=``, or with ``scale_factor=`` for
    `interpolate_offset`. The settings of models:

    ==============================================  ========  ===============  ===========
    model or library                                method    align_corners    antialias
    ==============================================  ========  ===============  ===========
    transformers: ViT, DeiT, CLIP, SigLIP, DINOv2   cubic     False            False
    DINO, DINOv2 (`interpolate_offset` 0.1)         cubic     False            False
    timm, open_clip, DINOv2 with registers          cubic     False            True
    SigLIP 2                                        linear    False            True
    Qwen3-VL, Qwen3.5                               linear    True             False
    Google's ViT (scipy.ndimage.zoom)               linear    True             False
    Kimi K2.5, GLM-4.1V                             cubic     False            False
    PaddleOCR-VL, Muse Spark                        linear    False            False
    SAM's relative tables, one axis                 linear    False            False
    BEiT's relative tables, in transformers         linear    False            False
    ==============================================  ========  ===============  ===========

    Qwen3-VL then orders the cells by merged blocks, as ``posref.positions.grid(h, w, merge=2)`` does. SigLIP 2 pads a batch
    with copies of row 0. Muse Spark swaps the new height and width. JAX's cubic without antialias differs: a = -0.5, divided
    by Z. BEiT puts its rows for the class token last.

    timm's ``resize_rel_pos_bias_table``, from BEiT's fine-tuning, is a different operation. It places the old rows at the
    uneven distances 1, 1 + q, 1 + q + q^2 and so on. It finds q by a bisection that ends at 1e-6, so the result depends on
    where it stopped. Between the rows timm interpolates linearly, or, with SciPy, by a cubic spline through all rows.

    PyTorch 2.13 on a CPU differs in two cases. With antialias and a new width of 1 it repeats the first row, unless the image
    is stored with channels last: a column of 1, 2, 4, 8 becomes 1.3, 1.3, 1.3. transformers' SigLIP 2 is affected for images
    one patch wide. With a scale factor, it leaves an axis unchanged whose size does not change, if the method is linear or
    antialias is on. Its CUDA kernel for linear does not.

    Examples
    --------
    >>> import numpy as np
    >>> row = np.asarray([[1.0], [2.0], [4.0], [8.0]])
    >>> options = {"old_size": (1, 4), "prefix": 0, "align_corners": False}
    >>> resample(row, (1, 3), method="linear", antialias=False, **options)[:, 0].round(4).tolist()
    [1.1667, 3.0, 7.3333]
    >>> resample(row, (1, 3), method="cubic", antialias=True, **options)[:, 0].round(4).tolist()
    [1.1327, 2.8944, 7.1259]
    """
    name = "resample"
    check_word(name, "method", method, METHODS)
    check_word(name, "boundary", boundary, BOUNDARIES)
    align_corners = check_flag(name, "align_corners", align_corners)
    antialias = check_flag(name, "antialias", antialias)
    interpolate_offset = _check_offset(interpolate_offset, align_corners)
    if boundary == "zeros" and antialias:
        msg = f"{name}: boundary must be 'border' with antialias=True (it drops cells outside the grid); got 'zeros'."
        raise ValueError(msg)
    size, old_size, prefix = _check_table(table, size, old_size, prefix)
    xp, d = library(name, table=table), table.shape[1]
    work, beyond = wide(table.dtype, xp), 0 if antialias or boundary == "zeros" else REACH
    cells = xp.reshape(cast(table[prefix:, :], work), (*old_size, d))
    last = len(size) - 1
    for n, m in zip(old_size, size, strict=True):
        cells = with_axis_moved(cells, 0, last)  # resampled axes come last
        if beyond:
            cells = xp.concat([*[cells[..., :1, :]] * beyond, cells, *[cells[..., -1:, :]] * beyond], axis=last)
        weights = _weights(n, m, beyond, method, align_corners, antialias, interpolate_offset, constants(xp))
        cells = matmul(beside(weights, table, work), cells)
    return xp.concat([table[:prefix, :], cast(xp.reshape(cells, (prod(size), d)), table.dtype)], axis=0)


def _weights(
    n: int,
    m: int,
    beyond: int,
    method: Method,
    align_corners: bool,
    antialias: bool,
    interpolate_offset: float | None,
    c: Namespace,
) -> Array:
    """Return the weight of every old cell, with `beyond` more on each side, in each new cell: ``(m, n + 2 * beyond)``."""
    step = old_cells_per_new(n, m, align_corners, interpolate_offset, c)
    r = c.abs(c.arange(-beyond, n + beyond, dtype=c.float64) - old_coordinates(step, m, align_corners, antialias, c))
    if antialias:
        r = r * (1 / c.maximum(step, c.asarray(1.0, dtype=c.float64)))
    if method == "cubic":
        weights = cubic_kernel(r, -0.5 if antialias else -0.75, c)
    else:
        weights = c.maximum(1 - r, c.asarray(0.0, dtype=c.float64))
    system = number_system(c)
    if system is not None:  # nobody multiplies a later factor into the kernel's polynomial
        weights = system.settled(weights)
    return weights / c.sum(weights, axis=1, keepdims=True) if antialias else weights


@part()
def old_cells_per_new(n: int, m: int, align_corners: bool, interpolate_offset: float | None, c: Namespace) -> Array:
    """Return s, the number of old cells for each new cell, as an array without axes."""
    old = c.asarray(float(n), dtype=c.float64)
    if align_corners:
        return (old - 1) / float(m - 1) if m > 1 else c.asarray(0.0, dtype=c.float64)
    if interpolate_offset is None:
        return old / float(m)
    return 1 / ((c.asarray(interpolate_offset, dtype=c.float64) + float(m)) / old)


@part()
def old_coordinates(step: Array, m: int, align_corners: bool, antialias: bool, c: Namespace) -> Array:
    """Return the coordinates of the m new cells, counted in old cells, shape ``(m, 1)``."""
    new = c.arange(0, m, dtype=c.float64)[:, None]
    return step * new if align_corners and not antialias else step * (new + 0.5) - 0.5


@part()
def cubic_kernel(r: Array, a: float, c: Namespace) -> Array:
    """Return Keys' kernel: the sum of its two pieces, each with r clipped to its range. Each is 0 at the end of its range."""
    one = c.asarray(1.0, dtype=c.float64)
    near, far = c.minimum(r, one), c.minimum(c.maximum(r, one), 2 * one)
    return (((a + 2) * near - (a + 3)) * near * near + 1) + (((a * far - 5 * a) * far + 8 * a) * far - 4 * a)


def _check_offset(offset: float | None, align_corners: bool) -> float | None:
    """Return the offset. Raise if it is not between 0 and 1, or has no effect."""
    if offset is None:
        return None
    offset = check_positive("resample", "interpolate_offset", offset)
    if offset >= 1:
        msg = f"resample: interpolate_offset must be below 1 (with 1 or more, PyTorch would add cells); got {offset!r}."
        raise ValueError(msg)
    if align_corners:
        msg = f"resample: interpolate_offset must be None with align_corners=True, where it has no effect; got {offset!r}."
        raise ValueError(msg)
    return offset


def _check_table(
    table: Array, size: Sequence[int], old_size: Sequence[int], prefix: int
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the sizes and the prefix. Raise if the sizes differ in length, or the table does not have their rows."""
    prefix = check_integer("resample", "prefix", prefix, 0)
    size = check_integers("resample", "size", size, 1)
    old_size = check_integers("resample", "old_size", old_size, 1)
    if not size or len(size) != len(old_size):
        msg = f"resample: size must have an int for every axis of old_size, {tuple(old_size)}; got {tuple(size)}."
        raise ValueError(msg)
    check_real("resample", table=table)
    rows = prefix + prod(old_size)
    if table.ndim != 2 or table.shape[0] != rows:
        msg = (
            f"resample: table must be 2-D with {rows} rows (prefix {prefix} plus the cells of old_size {tuple(old_size)}); "
            f"got shape {tuple(table.shape)}."
        )
        raise ValueError(msg)
    return size, old_size, prefix
