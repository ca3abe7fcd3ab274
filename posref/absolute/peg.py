"""Positional encoding generator: a depthwise convolution. Source: Chu et al., CPVT, arXiv:2102.10882, section 3.3."""

from posref.core.arrays import beside, cast, index_dtype, library, namespace, placement, spread, wide, with_axis_moved
from posref.core.checks import check_flag, check_real
from posref.spec import Axes, Flag, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Positional encoding generator (PEG)",
    idea=(
        "A small convolution adds to every image patch a weighted sum of its neighbours. Outside the image there are only "
        "zeros, by which a patch can tell where it is. There is no table, so images may have any size."
    ),
    family="absolute",
    source="arXiv:2102.10882, section 3.3",
    models=("CPVT", "Twins", "DaViT", "SegFormer"),
    domains={"residual": Flag()},
    arrays={"x": Axes("*R I J d"), "weight": Axes("d 1 k k"), "bias": Axes("d")},
    result="=x",
    rows="*R",
    requires=("k % 2 == 1",),
    sums=True,
    read={
        "CPVT": "Meituan-AutoML/Twins@c1ff671, gvt.py:305-320",
        "Twins": "Meituan-AutoML/Twins@c1ff671, gvt.py:305-320",
        "DaViT": "timm 1.0.31, timm/models/davit.py:36-62",
        "SegFormer": "transformers 5.23.0, models/segformer/modeling_segformer.py:206-245",
    },
)
def peg(x: ArrayOf[T], weight: ArrayOf[T], bias: ArrayOf[T], /, *, residual: bool) -> T:
    r"""
    Return a depthwise convolution of image patches, optionally added to the patches. Its zero padding reveals their position.

    .. math:: y_{i,j,c} = x_{i,j,c} + b_c + \sum_{m=0}^{K-1} \sum_{n=0}^{K-1} W_{c,m,n} \; x_{i+m-r, \, j+n-r, \, c},
        \qquad r = (K - 1)/2

    where (i, j) is a patch, c a channel, W the weight, b the bias and K the size of the kernel. In the sum, x is 0 outside the
    image. Without `residual` the first term is left out.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, I, J, d)``
        Patches in I rows and J columns, without class tokens.
    weight : array, real floating, shape ``(d, 1, K, K)``
        W, learned, in the layout of PyTorch's Conv2d with d groups. K is odd, and 3 in the models above.
    bias : array, real floating, shape ``(d,)``
        b, learned.
    residual : bool
        True adds x (CPVT, Twins, DaViT). SegFormer does not, and applies GELU to the result.

    Returns
    -------
    array, shape ``(*R, I, J, d)``
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If an array is not real floating, `x` has fewer than three axes, K is even, or the shape of `weight` or `bias` does not
        fit.

    Notes
    -----
    Class tokens are left out of the convolution and stay unchanged. CPVT applies it after its first block, Twins after the
    first block of every stage. If an object moves and stays away from the edges, the result moves with it. Only patches near
    an edge tell where they are.

    Examples
    --------
    >>> import numpy as np
    >>> x, weight = np.arange(6.0).reshape(2, 3, 1) / 5, np.arange(9.0).reshape(1, 1, 3, 3) / 10 - 0.3
    >>> peg(x, weight, np.asarray([0.05]), residual=True)[..., 0].round(4).tolist()
    [[0.73, 1.35, 1.13], [0.85, 1.05, 1.01]]
    >>> image = np.zeros((6, 6, 1))
    >>> image[2, 2] = 1.0
    >>> before, after = (peg(x, weight, np.zeros(1), residual=True) for x in (image, np.roll(image, 1, axis=1)))
    >>> np.array_equal(np.roll(before, 1, axis=1), after)
    True
    """
    residual = check_flag("peg", "residual", residual)
    check_real("peg", x=x, weight=weight, bias=bias)
    size = _size(tuple(x.shape), tuple(weight.shape), tuple(bias.shape))
    xp = library("peg", x=x, weight=weight, bias=bias)
    work, width = wide(x.dtype, xp), x.shape[-1]
    center, seen = cast(x, work), cast(x, work)
    for axis in (x.ndim - 3, x.ndim - 1):  # rows of patches, then columns, which now come after the rows' taps
        seen = _taps(seen, axis, size)
    seen = with_axis_moved(seen, -4, -3)  # (*R, I, J, K, K, d)
    terms = xp.reshape(seen, (*x.shape[:-1], size * size, width)) * xp.matrix_transpose(
        xp.reshape(cast(weight, work), (width, size * size))
    )
    first = xp.broadcast_to(cast(bias, work), (*x.shape[:-1], 1, width))  # of the sum: convolutions begin with it
    sums = xp.sum(xp.concat([first, terms], axis=x.ndim - 1), axis=-2)
    return cast(center + sums if residual else sums, x.dtype)


def _taps(x: ArrayOf[T], axis: int, size: int) -> T:
    """Return `x` with a new axis after `axis`: the `size` neighbours along it, 0 outside."""
    xp = namespace(x)
    before, count, after = tuple(x.shape[:axis]), x.shape[axis], tuple(x.shape[axis + 1 :])
    nothing = xp.broadcast_to(beside(0.0, x, x.dtype), (*before, size // 2, *after))
    each, ahead = (spread(xp.arange(n, dtype=index_dtype(x), **placement(x, xp)), x) for n in (count, size))
    padded = xp.concat([nothing, x, nothing], axis=axis)
    return xp.reshape(xp.take(padded, xp.reshape(each[:, None] + ahead, (-1,)), axis=axis), (*before, count, size, *after))


def _size(x: tuple[int, ...], weight: tuple[int, ...], bias: tuple[int, ...]) -> int:
    """Return the number of taps along an axis. Raise if shapes do not fit."""
    if len(x) < 3:
        msg = f"peg: x must be (..., rows, columns, channels); got shape {x}."
        raise ValueError(msg)
    size = weight[-1] if weight else 0
    if weight != (x[-1], 1, size, size) or size % 2 == 0 or bias != x[-1:]:
        msg = f"peg: weight must be ({x[-1]}, 1, K, K), with odd K, and bias ({x[-1]},); got {weight} and {bias}."
        raise ValueError(msg)
    return size
