"""Storing keys and values in 8 bits. Source: Micikevicius et al., arXiv:2209.05433, section 3."""

from typing import Literal, NamedTuple, get_args

from posref.core.arrays import Array, Namespace, beside, cast, clipped, library, namespace, number_system, wide
from posref.core.blocks import in_blocks
from posref.core.checks import check_frequencies, check_real, check_word
from posref.spec import Axes, OneOf, encoding
from posref.types import ArrayOf, T

Format = Literal["e4m3fn", "e5m2", "e4m3fnuz"]
Direction = Literal["divide", "multiply"]
FORMATS: tuple[Format, ...] = get_args(Format)
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


class Grid(NamedTuple):
    """The numbers of a format: how many significant bits, the exponents of the smallest and the largest, the largest."""

    bits: int
    least: int
    most: int
    largest: float


GRIDS = {
    "e4m3fn": Grid(4, -9, 8, 448.0),
    "e5m2": Grid(3, -16, 15, 57344.0),
    "e4m3fnuz": Grid(4, -10, 7, 240.0),
}


@encoding(
    title="Float8 storage",
    idea=(
        "Keys and values in 8 bits take half the memory. Each number is divided by a scale, limited to the range of the "
        "format, and rounded to the nearest of its numbers. A reader multiplies by the scale again."
    ),
    tool=True,
    family="attention",
    source="arXiv:2209.05433, section 3",
    models=("vLLM", "SGLang", "FlashInfer"),
    domains={"format": OneOf(FORMATS), "direction": OneOf(DIRECTIONS)},
    requires=("n >= 1",),
    arrays={
        "x": Axes("*R H D | *B H D | *B H n*size", usual=(-8.0, 8.0)),
        "scale": Axes("~H | *B H | *B H n", "wide", positive=True, usual=(2**-6, 2.0)),
    },
    result="=x",
    rows="*R *B",
    noun="stored",
    read={
        "vLLM": "vllm 0.33.0, vllm/v1/attention/ops/triton_reshape_and_cache_flash.py:126",
        "SGLang": "sglang 0.5.23, sglang/srt/mem_cache/memory_pool.py:3393-3403",
        "FlashInfer": "flashinfer-python 0.7.2.post1, flashinfer/data/include/flashinfer/pos_enc.cuh:1026, 1057, 1087",
    },
)
def to_float8(x: ArrayOf[T], scale: ArrayOf[T], /, *, format: Format, direction: Direction) -> T:
    r"""
    Return the numbers that a cache of 8 bits holds for `x`: scaled, limited to the range, and rounded.

    .. math:: y = \mathrm{round}\left(\min(\max(v, -M), M)\right), \qquad v = x / s \quad \text{or} \quad v = x \, s

    s is the scale of the number's head, token and head, or block. M is the largest number of the format: 448 for e4m3fn, 57344
    for e5m2, 240 for e4m3fnuz. round gives the nearest number of the format, and halfway between two the one
    whose last bit is 0.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, H, D)``
        Keys or values of H heads, such as the rows of `write_cache`, in the dtype in which they are computed.
    scale : array, real floating, at least float32, shape ``(H,)``, ``(1,)``, ``()``, ``(*R, H)`` or ``(*R, H, n)``
        s, above 0: a scale for each head, or one for all; for each head of each token; or for each of n blocks of neighbouring
        channels, which are equally long. One row of channels has H = 1.
    format : {"e4m3fn", "e5m2", "e4m3fnuz"}
        Which numbers there are. The names count the bits of exponent and mantissa.

        - ``"e4m3fn"``: There are numbers of 4 significant bits from 1/64 to 448, multiples of 1/512 below, and no infinity.
          Used by vLLM, SGLang, FlashInfer.
        - ``"e5m2"``: There are numbers of 3 significant bits from 2**-14 to 57344, and multiples of 2**-16 below. Used by vLLM,
          FlashInfer.
        - ``"e4m3fnuz"``: There are numbers of 4 significant bits from 1/128 to 240, multiples of 1/1024 below, and no -0. AMD's
          gfx942 has it. Used by vLLM.
    direction : {"divide", "multiply"}
        What is done with the scale.

        - ``"divide"``: The scale divides x, and a reader multiplies. Used by vLLM, SGLang.
        - ``"multiply"``: The scale multiplies x, and a reader divides. FlashInfer calls it ``quant_scale_kv``. Used by
          FlashInfer.

    Returns
    -------
    array, shape ``(*R, H, D)``
        y, in the dtype of `x`, which has every number of both formats. Bytes are judged by the numbers that they stand for:
        return ``cache.view(torch.float8_e4m3fn).to(x.dtype)``. Numbers below 0 that round to 0 give -0.

    Raises
    ------
    ValueError
        If `x` or `scale` is not real floating, `scale` is narrower than float32 or fits no head, or an option is unknown.

    Notes
    -----
    Kernels saturate: beyond M they store M or -M, for infinities too, and NaN stays NaN. Casts differ. PyTorch 2.13 saturates
    in e4m3fn and gives infinity in e5m2. ml_dtypes, which JAX uses, gives NaN above 464 in e4m3fn. So limit first, then cast.

    v is computed in float32 or wider, and rounded once. Code that multiplies by 1/s instead of dividing, as vLLM's scales of a
    token, may get the neighbouring number, but only where the error of v reaches the middle between two numbers. A tolerance is
    not 0 only there, and then it is the distance to the neighbour. SGLang rounds s and v to the dtype of x before it rounds to
    8 bits. Class "low" allows this in half precision, and class "fused" does not.

    A byte of e4m3fnuz is half of what it is in e4m3fn, and 0x80 is NaN there, -0 here. vLLM divides by 224 to find a scale for
    it, not by 240, so that bytes are the same as with 448.

    How a scale is found, scales that are stored in 8 bits (ue8m0), formats of 4 bits and the places of scales in a page are not
    defined here. Decode the page, and compare payload and scale.

    The derivative is 0. PyTorch's casts let cotangents pass as if nothing was rounded, so gradients are not asked.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.asarray([[0.3, 17.0, 19.0, 600.0, -0.001]])
    >>> to_float8(x, np.asarray([1.0]), format="e4m3fn", direction="divide").tolist()
    [[0.3125, 16.0, 20.0, 448.0, -0.001953125]]
    """
    name = "to_float8"
    xp = library(name, x=x, scale=scale)
    check_word(name, "format", format, FORMATS)
    check_word(name, "direction", direction, DIRECTIONS)
    check_real(name, x=x, scale=scale)
    check_frequencies(name, "scale", scale, reason="up to 3 of 100 values are stored as their neighbours")
    shape, scales = tuple(x.shape), tuple(scale.shape)
    in_parts = len(scales) == len(shape) > 1 and scales[:-1] == shape[:-1] and scales[-1] > 0 and shape[-1] % scales[-1] == 0
    if len(shape) < 2 or not (in_parts or scales in ((), (1,), shape[-2:-1], shape[:-1])):
        msg = (
            f"{name}: x must be (..., heads, channels) and scale have one number for each head, or one for all, or be "
            f"(..., heads) or (..., heads, blocks), with channels that the blocks divide; got {shape} and {scales}."
        )
        raise ValueError(msg)
    parts = xp.reshape(x, (*scales, shape[-1] // scales[-1])) if in_parts else x
    return xp.reshape(_stored(parts, scale, format=format, direction=direction), shape)


@in_blocks(x=(0, 1), scale=(0, 0))
def _stored(x: Array, scale: Array, /, *, format: str, direction: str) -> Array:
    """Return what is stored of rows that have one scale each: the scales broadcast to the rows from the right."""
    xp = namespace(x, scale)
    work = wide(x.dtype, xp)
    scaled = _scaled(cast(x, work), cast(scale, work)[..., None], direction, xp)
    grid, system = GRIDS[format], number_system(xp)
    if system is not None:
        return system.saturated(scaled, grid.bits, grid.least, grid.largest, x.dtype)
    rounded = _rounded(scaled, grid, xp)
    return cast(rounded + 0.0 if format == "e4m3fnuz" else rounded, x.dtype)  # without -0


def _scaled(x: Array, scale: Array, direction: str, xp: Namespace) -> Array:
    """Return x divided by, or times, the scale."""
    if direction == "multiply":
        return x * scale
    quotient, system = x / scale, number_system(xp)
    return quotient if system is None else system.either(quotient, lambda: x * (1 / scale))  # error bounds cover either formula


def _rounded(x: Array, grid: Grid, xp: Namespace) -> Array:
    """Return the nearest number of a format, half to even, the largest beyond its range."""
    limited = clipped(x, -grid.largest, grid.largest)
    size, step = xp.abs(limited), beside(2.0**grid.least, x, x.dtype)
    for exponent in range(grid.least + grid.bits, grid.most + 1):  # from here on the distance of neighbours doubles
        step = xp.where(size >= 2.0**exponent, beside(2.0 ** (exponent - grid.bits + 1), x, x.dtype), step)
    return xp.round(limited / step) * step
