"""Continuous relative position bias of Swin v2. Source: Liu et al., arXiv:2111.09883, section 3.3, and the authors' code."""

from typing import Literal, get_args

from posref.bias.log_spaced_coordinates import log_spaced_coordinates
from posref.bias.window_bias import window_entries, window_rows
from posref.core.arrays import Array, beside, by_sign, cast, index_dtype, library, namespace, wide
from posref.core.checks import check_integer, check_real, check_word
from posref.core.products import matmul
from posref.spec import Axes, Integer, OneOf, encoding, part
from posref.types import ArrayOf, T

Form = Literal["swin", "cr"]
FORMS: tuple[Form, ...] = get_args(Form)


@encoding(
    title="Continuous relative position bias (Swin v2)",
    idea=(
        "A window of another size has offsets that a learned table lacks. A small network knows them all: from the offset in "
        "rows and columns, on a logarithmic scale, it makes a bias for every head, the same for all cells that far apart."
    ),
    family="bias",
    source="arXiv:2111.09883, section 3.3",
    models=("Swin v2", "Swin2SR", "MaxViT (timm)", "CoAtNet (timm)"),
    domains={
        "height": Integer(1, usual=5),
        "width": Integer(1, usual=5),
        "form": OneOf(FORMS),
        "pretrained_height": Integer(1, optional=True, usual=24),
        "pretrained_width": Integer(1, optional=True, usual=24),
    },
    arrays={"w1": Axes("m 2"), "b1": Axes("m"), "w2": Axes("H m"), "b2": Axes("H", optional=True)},
    result="H height*width height*width",
    rows="H",
    sums=True,
    read={
        "Swin v2": "transformers 5.23.0, models/swinv2/modeling_swinv2.py:418-428, 458-491",
        "timm's MaxViT and CoAtNet models with RelPosMlp": (
            "timm 1.0.31, timm/layers/pos_embed_rel.py:391-419, 446-458, 483-494; timm/models/maxxvit.py:802-804"
        ),
        "Swin2SR": "transformers 5.23.0, models/swin2sr/modeling_swin2sr.py:296-331",
        "MaxViT (timm)": "timm 1.0.31, timm/models/maxxvit.py:802-804, 2111-2149",
        "CoAtNet (timm)": "timm 1.0.31, timm/models/maxxvit.py:802-804, 1960-1978",
    },
)
def continuous_position_bias(
    w1: ArrayOf[T], b1: ArrayOf[T], w2: ArrayOf[T], /, *, b2: ArrayOf[T] | None = None, height: int, width: int, form: Form,
    pretrained_height: int | None = None, pretrained_width: int | None = None,
) -> T:  # fmt: skip
    r"""
    Return the bias of a window: a network of one hidden layer computes it from the offset between every two cells.

    .. math::

        B_{h,i,j} = 16 \, \sigma(z_h(y_i - y_j, x_i - x_j)), \qquad
        z_h(u, v) = \sum_{n=1}^{m} W_{2,hn} \max(W_{1,n1} c(u) + W_{1,n2} c(v) + b_{1,n}, 0) + b_{2,h}

    where cell i is in row y_i and column x_i, h is the head, σ the sigmoid, and c gives log-spaced coordinates
    (`log_spaced_coordinates`, with the pretrained height for rows and the pretrained width for columns). Cells are counted row
    by row. With `form` "cr", B is z itself, and c the logarithm of the offset.

    Parameters
    ----------
    w1 : array, real floating, shape ``(m, 2)``
        Weights of the first layer, learned. Column 0 is for rows of the window, column 1 for columns.
    b1 : array, real floating, shape ``(m,)``
        Biases of the first layer, learned.
    w2 : array, real floating, shape ``(H, m)``
        Weights of the second layer, learned.
    b2 : array, real floating, shape ``(H,)``, or None
        Biases of the second layer, learned. None in Swin v2.
    height : int
        Rows of the window, at least 1.
    width : int
        Columns of the window, at least 1.
    form : {"swin", "cr"}
        What the network sees, and what follows it.

        - ``"swin"``: Offsets as a share of the window, and 16 times the sigmoid of the output. Used by Swin v2.
        - ``"cr"``: The logarithm of the offset, and the output itself. Used by timm's MaxViT and CoAtNet models with
          RelPosMlp.
    pretrained_height : int or None
        Rows of the window in training, at least 1. None: `height`. A checkpoint's pretrained window of 0 is None. Without
        effect in form "cr".
    pretrained_width : int or None
        Columns of the window in training, at least 1. None: `width`.

    Returns
    -------
    array, shape ``(H, N, N)``, with N = height * width
        In the dtype of `w1`, in logit units. In form "swin" between 0 and 16. Swin v2 adds it to the cosine of query and key
        times a learned scale, before the mask.

    Raises
    ------
    ValueError
        If shapes do not fit, an array is not real floating, a size is less than 1, or `form` is unknown.

    Notes
    -----
    The network has 512 hidden units in Swin v2. Swin v2 masks with -100, and transformers adds that mask twice. Cosines times
    the scale differ by up to 200, so that -100 once does not hide every key. A class token has bias 0 in timm.

    Examples
    --------
    >>> import numpy as np
    >>> w1, b1, w2 = np.asarray([[1.0, 0.0]]), np.asarray([0.0]), np.asarray([[1.0]])
    >>> continuous_position_bias(w1, b1, w2, height=2, width=1, form="swin").round(4).tolist()
    [[[8.0, 8.0], [11.8728, 8.0]]]
    """
    name = "continuous_position_bias"
    check_word(name, "form", form, FORMS)
    layers = {"w1": w1, "b1": b1, "w2": w2} | ({} if b2 is None else {"b2": b2})
    xp = library(name, **layers)
    check_real(name, **layers)
    heads, hidden = tuple(w2.shape) if w2.ndim == 2 else (0, 0)
    expected = {"w1": (hidden, 2), "b1": (hidden,), "w2": (heads, hidden), "b2": (heads,)}
    for argument, x in layers.items():
        if tuple(x.shape) != expected[argument] or w2.ndim != 2:
            msg = f"{name}: {argument} must have shape {expected[argument]}, with w2 (heads, hidden); got {tuple(x.shape)}."
            raise ValueError(msg)
    height, width = check_integer(name, "height", height, 1), check_integer(name, "width", width, 1)
    if pretrained_height is not None:
        pretrained_height = check_integer(name, "pretrained_height", pretrained_height, 1)
    if pretrained_width is not None:
        pretrained_width = check_integer(name, "pretrained_width", pretrained_width, 1)
    windows = [pretrained_height or height, pretrained_width or width] if form == "swin" else [None, None]
    work = wide(w1.dtype, xp)
    y, x = (
        log_spaced_coordinates(beside(list(range(1 - n, n)), w1, index_dtype(w1)), window=window, dtype=work)
        for n, window in zip((height, width), windows, strict=True)
    )
    table = offset_network(y, x, *(cast(layer, work) for layer in layers.values()))
    table = bounded_bias(table) if form == "swin" else table
    return cast(window_entries(table, window_rows(table, [1, height, width])), w1.dtype)


@part()
def offset_network(y: Array, x: Array, w1: Array, b1: Array, w2: Array, b2: Array | None = None, /) -> Array:
    """Return the outputs of the network for all pairs of coordinates, row by row, shape (rows * columns, H)."""
    xp = namespace(w1)
    hidden = y[:, None, None] * w1[:, 0] + x[None, :, None] * w1[:, 1] + b1
    hidden = xp.reshape(xp.maximum(hidden, beside(0.0, hidden, hidden.dtype)), (y.shape[0] * x.shape[0], w1.shape[0]))
    table = matmul(hidden, xp.matrix_transpose(w2))
    return table if b2 is None else table + b2


@part()
def bounded_bias(table: Array, /) -> Array:
    """Return 16 times the sigmoid, with an exponential that does not overflow."""
    xp = namespace(table)
    small = xp.exp(by_sign(table)[2])
    return 16.0 * xp.where(table < 0, small, beside(1.0, table, table.dtype)) / (small + 1.0)
