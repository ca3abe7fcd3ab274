"""Sinusoidal positions. Source: Vaswani et al., arXiv:1706.03762, section 3.5."""

from typing import Literal, get_args

from posref.absolute.sines import arranged, followed_by_zeros, ladder
from posref.core.angles import cos_sin
from posref.core.arrays import Array, DType, cast, library, result_dtype
from posref.core.blocks import in_blocks
from posref.core.checks import check_integer, check_positions, check_positive, check_word
from posref.spec import Axes, Flag, Integer, OneOf, Real, encoding
from posref.types import ArrayOf, T

Layout = Literal["interleaved", "sin_cos", "cos_sin"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
Odd = Literal["refused", "zeros", "truncated", "extra_sine"]
ODD: tuple[Odd, ...] = get_args(Odd)


@encoding(
    title="Sinusoidal position encoding",
    idea=(
        "Every position gets a vector of sines and cosines, like the hands of many clocks, some fast and some slow. Together "
        "they tell all positions apart, and nothing is learned. The Transformer adds this vector to the token's embedding."
    ),
    family="absolute",
    source="arXiv:1706.03762, section 3.5",
    models=("Transformer", "Whisper encoder", "M2M100", "Marian", "Pegasus"),
    domains={
        "dim": Integer(2, usual=64),
        "layout": OneOf(LAYOUTS),
        "base": Real(0, usual=(2, 1e6)),
        "endpoint": Flag(),
        "odd": OneOf(ODD),
        "scale": Real(0),
    },
    arrays={"positions": Axes("*P", "position")},
    result="*P dim",
    rows="*P",
    requires=("dim >= 4 or not endpoint", "dim % 2 == 0 or odd != 'refused'"),
    invariants=("bounded", "distinct", "linear in PE(p)"),
    rounded=("positions", "result"),
    read={
        "tensor2tensor": "tensorflow/tensor2tensor@bafdc1b6, tensor2tensor/layers/common_attention.py:443-456",
        "fairseq": "facebookresearch/fairseq@3d262bb2, fairseq/modules/sinusoidal_positional_embedding.py:56-67",
        "Whisper": "transformers 5.23.0, models/whisper/modeling_whisper.py:56-65",
        "Marian": "transformers 5.23.0, models/marian/modeling_marian.py:78-91",
        "M2M100": "transformers 5.23.0, models/m2m_100/modeling_m2m_100.py:100-118",
        "RoFormer, Marian and Pegasus in transformers": (
            "transformers 5.23.0, models/roformer/modeling_roformer.py:55-68; transformers 5.23.0, "
            "models/marian/modeling_marian.py:78-91; transformers 5.23.0, "
            "models/pegasus/modeling_pegasus.py:80-93"
        ),
        "diffusers with flip_sin_to_cos": "huggingface/diffusers@58eb52c080, src/diffusers/models/embeddings.py:71-73",
        "diffusers' timesteps": "huggingface/diffusers@58eb52c080, src/diffusers/models/embeddings.py:75-77",
        "Keras Hub": "keras-team/keras-hub@71453d08f, keras_hub/src/layers/modeling/sine_position_encoding.py:87-94",
        "positional-encodings by tatp22": (
            "tatp22/multidim-positional-encoding@efeb8d9, positional_encodings/torch_encodings.py:40-55"
        ),
        "x-transformers": "x-transformers 2.31.10, x_transformers/x_transformers.py:444-472",
        "MLX": "mlx 0.32.4, mlx/nn/layers/positional_encoding.py:112",
        "Whisper encoder": "transformers 5.23.0, models/whisper/modeling_whisper.py:56-65",
    },
)
@in_blocks(positions=(0, 0))
def sinusoidal(
    positions: ArrayOf[T],
    dim: int,
    /,
    *,
    layout: Layout,
    base: float = 10000.0,
    endpoint: bool = False,
    odd: Odd = "refused",
    scale: float = 1.0,
    dtype: DType | None = None,
) -> T:
    r"""
    Return sines and cosines of every position at geometrically spaced frequencies.

    .. math:: PE_{p,2i} = \sin(p \, b^{-2i/d}), \qquad PE_{p,2i+1} = \cos(p \, b^{-2i/d}), \qquad i = 0 \dots d/2-1

    where p is the position, d the width and b the base. This is `layout` "interleaved". "sin_cos" has sine i in column i and
    cosine i in column d/2 + i; "cos_sin" swaps the two halves. With `endpoint` the exponent is -i/(d/2 - 1). The result is
    multiplied by `scale`. If d is odd, `odd` says what the columns are.

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(*P,)``
        p, in tokens.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    dim : int
        d, at least 2 (at least 4 with `endpoint`).
    layout : {"interleaved", "sin_cos", "cos_sin"}
        The order of the columns.

        - ``"interleaved"``: Each sine stands beside the cosine of the same frequency, as in the Transformer's paper.
        - ``"sin_cos"``: The first half holds all sines, the second all cosines. Used by tensor2tensor, fairseq, Whisper,
          Marian.
        - ``"cos_sin"``: The first half holds all cosines, the second all sines. Used by diffusers with flip_sin_to_cos.
    base : float
        b, above 0; 10000 in the paper.
    endpoint : bool
        False follows the paper's text. True makes the last frequency exactly 1/b (tensor2tensor, fairseq, M2M100, Whisper). The
        first Transformers were trained with True.
    odd : {"refused", "zeros", "truncated", "extra_sine"}
        What the columns are if d is odd. It has no effect if d is even.

        - ``"refused"``: An odd width is an error.
        - ``"zeros"``: The last column is zeros, the others are the encoding of the even width below, d - 1. Used by
          tensor2tensor, fairseq, M2M100, diffusers' timesteps.
        - ``"truncated"``: The encoding of the even width above, d + 1, loses its last column. Used by positional-encodings by
          tatp22.
        - ``"extra_sine"``: There is one more sine than cosines, and the odd width stays in the exponents. The (d + 1)/2
          frequencies have the exponents -2i/d, or -2i/(d - 1) with `endpoint`; the last has a sine and no cosine. Used by
          RoFormer, Marian and Pegasus in transformers; Keras Hub.
    scale : float
        Multiplies the result, above 0. 1 in the paper, sqrt(2/d) by default in MLX. In x-transformers it is learned and starts
        at 1/sqrt(d).
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*P, d)``
        Between -`scale` and `scale`.

    Raises
    ------
    ValueError
        If `dim` is too small, or odd with `odd` "refused", `base` or `scale` is not positive, a word is unknown, or positions
        are half precision.

    Notes
    -----
    If d is even, the three layouts have the same columns, in another order. A model can be trained with any of them, but its
    weights then fit no other.

    The rules for odd widths all differ, so none is the default. With "interleaved", "truncated" and "extra_sine" have the same
    order of columns but different exponents, -2i/(d + 1) and -2i/d.

    Vaswani et al. measured nearly the same results with learned tables (table 3, row E). They chose sinusoids since those may
    serve longer texts than those of training. Press et al. (arXiv:2108.12409, section 2.2) found that they hardly do.

    Examples
    --------
    >>> import numpy as np
    >>> sinusoidal(np.asarray([0, 1]), 4, layout="sin_cos").round(4).tolist()
    [[0.0, 0.0, 1.0, 1.0], [0.8415, 0.01, 0.5403, 1.0]]
    """
    check_word("sinusoidal", "layout", layout, LAYOUTS)
    check_word("sinusoidal", "odd", odd, ODD)
    check_positions("sinusoidal", "positions", positions)
    base = check_positive("sinusoidal", "base", base)
    scale = check_positive("sinusoidal", "scale", scale)
    _check_width(dim, endpoint, odd)
    dtype = result_dtype("sinusoidal", positions, dtype)
    count = dim // 2 if odd == "zeros" else (dim + 1) // 2
    width = dim if odd == "extra_sine" else 2 * count
    frequencies = ladder(library("sinusoidal", positions=positions), count, count - 1 if endpoint else width / 2, base)
    cos, sin = cos_sin(positions, frequencies, dtype=dtype)
    waves = followed_by_zeros(_columns(sin, cos, layout, dim, odd), dim)
    return cast(waves if scale == 1 else waves * scale, dtype)


def _columns(sin: Array, cos: Array, layout: Layout, dim: int, odd: Odd) -> Array:
    """Return sines and cosines in the order of the layout. Drop the last column or cosine if there are too many."""
    if odd == "extra_sine" and dim % 2 and layout != "interleaved":
        cos = cos[..., :-1]
    columns = arranged(sin, cos, layout)
    return columns[..., :dim] if columns.shape[-1] > dim else columns


def _check_width(dim: int, endpoint: bool, odd: Odd) -> None:
    """Raise for odd widths without a rule, and with `endpoint` for widths below 4, where the exponent may divide by 0."""
    dim = check_integer("sinusoidal", "dim", dim, 4 if endpoint else 2, " with endpoint=True" if endpoint else "")
    if dim % 2 and odd == "refused":
        msg = f"sinusoidal: dim must be even unless odd says what its columns are (libraries disagree); got {dim}."
        raise ValueError(msg)
