"""Sinusoids of several axes, as for images and videos. Source: He et al., MAE, arXiv:2111.06377, appendix A.1, and its code."""

from collections.abc import Sequence
from typing import Literal, get_args

from posref.absolute.sinusoidal import LAYOUTS, Layout, sinusoidal
from posref.core.arrays import DType, library, result_dtype
from posref.core.checks import check_integers, check_positions, check_positive, check_word
from posref.spec import Axes, Flag, Integers, OneOf, Real, encoding
from posref.types import ArrayOf, T

Arrangement = Literal["axis", "outer"]
ARRANGEMENTS: tuple[Arrangement, ...] = get_args(Arrangement)


@encoding(
    title="Sinusoidal encoding of several coordinates",
    idea=(
        "An image patch has a row and a column, a patch of a video also a frame. Every coordinate gets sinusoids of its own, "
        "and these stand side by side in one vector. Nothing is learned."
    ),
    family="absolute",
    source="arXiv:2111.06377, appendix A.1",
    models=("MAE", "DiT", "SD3", "CogVideoX", "RT-DETR"),
    domains={
        "dims": Integers(2, step=2),
        "layout": OneOf(LAYOUTS),
        "arrangement": OneOf(ARRANGEMENTS),
        "base": Real(0, usual=(2, 1e6)),
        "endpoint": Flag(),
    },
    arrays={"positions": Axes("len(dims) *P", "position")},
    result="*P sum(dims)",
    rows="*P",
    requires=("min(dims) >= 4 or not endpoint", "arrangement == 'axis' or layout != 'interleaved'"),
    read={
        "MAE": "facebookresearch/mae@efb2a80, util/pos_embed.py:38-67",
        "timm unless interleave_sin_cos": ("huggingface/pytorch-image-models@aa4b5850, timm/layers/pos_embed_sincos.py:39-78"),
        "diffusers": "diffusers 0.42.1, diffusers/models/embeddings.py:116-144, 180-219",
        "vit-pytorch": "vit-pytorch 1.26.11, vit_pytorch/simple_vit.py:12-21",
        "DiT": "facebookresearch/DiT@ed81ce2, models.py:274-300",
        "SD3": "diffusers 0.42.1, diffusers/models/embeddings.py:336-357",
        "RT-DETR": "transformers 5.23.0, models/rt_detr/modeling_rt_detr.py:829-914",
    },
)
def sinusoidal_nd(
    positions: ArrayOf[T],
    /,
    *,
    dims: Sequence[int],
    layout: Layout,
    arrangement: Arrangement,
    base: float = 10000.0,
    endpoint: bool = False,
    dtype: DType | None = None,
) -> T:
    r"""
    Return the sinusoids of several coordinates, one block of columns for each.

    .. math:: [PE^{(d_0)}_{p_0} \,\|\, PE^{(d_1)}_{p_1} \,\|\, \dots]

    where p_a is the coordinate on axis a, d_a the width of its block, and PE^(d) the result of `sinusoidal` with width d.

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(A, *P)``
        One coordinate for each of A axes, in the order of the blocks. To match code whose first block is x, pass columns first.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    dims : sequence of int
        d_a, even, at least 2 (at least 4 with `endpoint`). An image usually has two blocks of d/2.
    layout : {"interleaved", "sin_cos", "cos_sin"}
        The order of the columns within a block, as in `sinusoidal`.

        - ``"interleaved"``: Each sine stands beside the cosine of the same frequency, as in the Transformer's paper.
        - ``"sin_cos"``: The first half holds all sines, the second all cosines.
        - ``"cos_sin"``: The first half holds all cosines, the second all sines.
    arrangement : {"axis", "outer"}
        How the blocks of the axes are ordered. "outer" is not allowed with "interleaved".

        - ``"axis"``: All channels of one axis come before those of the next. Used by MAE.
        - ``"outer"``: The sines of all axes come before the cosines of all axes; the reverse with "cos_sin". Used by timm
          unless interleave_sin_cos.
    base, endpoint
        As in `sinusoidal`, for every axis.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*P, sum(dims))``
        Between -1 and 1.

    Raises
    ------
    ValueError
        If the first axis of positions and `dims` differ in length, a width is odd or too small, a word is unknown, `base` is
        not positive, or positions are half precision.

    Notes
    -----
    **The first block** holds the column in MAE, DiT, SD3, diffusers and vit-pytorch. In timm and transformers' RT-DETR it holds
    the row. On square grids a swap is easy to miss. MAE's code calls its first block ``emb_h``, but it holds the column.

    **Coordinates** are whole numbers in MAE and timm. In diffusers they are ``i * base_size / (size * interpolation_scale)``.
    SD3 reads part of a table for M by M patches: ``i * base_size / M``, for h rows from ``(M - h) // 2`` on.

    For DETR, which counts the valid cells of a mask, use `sine_2d`.

    CogVideoX has widths (d/4, 3d/8, 3d/8) for frame, column and row. vit-pytorch has ``endpoint=True``. Rows of zeros for a
    class token are left to the caller.

    Examples
    --------
    The cell at row 1 and column 2 of an image, with the row's block first:

    >>> import numpy as np
    >>> sinusoidal_nd(np.asarray([1, 2]), dims=(4, 4), layout="sin_cos", arrangement="axis").round(4).tolist()
    [0.8415, 0.01, 0.5403, 1.0, 0.9093, 0.02, -0.4161, 0.9998]
    """
    name = "sinusoidal_nd"
    check_word(name, "layout", layout, LAYOUTS)
    check_word(name, "arrangement", arrangement, ARRANGEMENTS)
    dims = check_integers(name, "dims", dims, 2)
    if arrangement == "outer" and layout == "interleaved":
        msg = f"{name}: arrangement 'outer' needs layout 'sin_cos' or 'cos_sin'; got {layout!r}."
        raise ValueError(msg)
    check_positions(name, "positions", positions)
    if positions.ndim < 1 or positions.shape[0] != len(dims) or not dims:
        need = f"a first axis of {len(dims)}, one coordinate for each width"
        msg = f"{name}: positions must have {need}; got {tuple(positions.shape)}."
        raise ValueError(msg)
    xp = library(name, positions=positions)
    base = check_positive(name, "base", base)
    dtype = result_dtype(name, positions, dtype)
    blocks = [
        sinusoidal(positions[axis, ...], width, layout=layout, base=base, endpoint=endpoint, dtype=dtype)
        for axis, width in enumerate(dims)
    ]
    if arrangement == "outer":
        halves = [(block[..., : block.shape[-1] // 2], block[..., block.shape[-1] // 2 :]) for block in blocks]
        blocks = [half for number in (0, 1) for half in (pair[number] for pair in halves)]
    return xp.concat(blocks, axis=positions.ndim - 1)
