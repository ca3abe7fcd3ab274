"""Fourier features: sines and cosines of coordinates. Source: Mildenhall et al., NeRF, arXiv:2003.08934, equation (4)."""

from typing import Any, Literal, get_args

from posref.core.angles import cos_sin_of_half_turns, cos_sin_of_pairs
from posref.core.arrays import Array, DType, cast, library, namespace, result_dtype, wide, with_axis_moved
from posref.core.checks import check_frequencies, check_positions, check_word
from posref.spec import Axes, OneOf, encoding
from posref.types import AnyArray, ArrayOf, T

Unit = Literal["radians", "half_turns", "turns"]
UNITS: tuple[Unit, ...] = get_args(Unit)
Arrangement = Literal[
    "coordinate band wave", "band wave coordinate", "wave coordinate band", "coordinate wave band", "wave band coordinate"
]
ARRANGEMENTS: tuple[Arrangement, ...] = get_args(Arrangement)
Include = Literal["none", "first", "by_coordinate"]
INCLUDE: tuple[Include, ...] = get_args(Include)


@encoding(
    title="Fourier features",
    idea=(
        "A network learns fine detail badly from a bare coordinate such as 0.731. Sines and cosines of it, at frequencies from "
        "low to high, spread it over many channels: the low ones tell roughly where a point is, the high ones tell it from its "
        "neighbours."
    ),
    family="absolute",
    source="arXiv:2003.08934, equation (4)",
    models=("NeRF", "Perceiver", "Perceiver IO", "GLIGEN"),
    domains={"unit": OneOf(UNITS), "arrangement": OneOf(ARRANGEMENTS), "include": OneOf(INCLUDE)},
    arrays={"x": Axes("*P c", "position"), "bands": Axes("K | c K", "wide")},
    result="*P 2*c*K+c*[0,1][include!='none']",
    rows="*P",
    requires=("include != 'by_coordinate' or arrangement in ('coordinate band wave', 'coordinate wave band')",),
    rounded=("bands",),
    read={
        "NeRF's code": "bmild/nerf@14c5556, run_nerf_helpers.py:27-55",
        "GLIGEN": "gligen/GLIGEN@f9dccb9, ldm/modules/diffusionmodules/util.py:12-26",
        "Perceiver": "google-deepmind/deepmind-research@f5de0ed, perceiver/position_encoding.py:25-75",
        "Perceiver's code": "google-deepmind/deepmind-research@f5de0ed, perceiver/position_encoding.py:25-75",
        "Perceiver in transformers": "transformers 5.23.0, models/perceiver/modeling_perceiver.py:2429-2478",
        "lucidrains' perceiver-pytorch": (
            "lucidrains/perceiver-pytorch@96097c6, perceiver_pytorch/perceiver_pytorch.py:38-48, 262-263"
        ),
        "timm's FourierEmbed": "huggingface/pytorch-image-models@aa4b5850, timm/layers/pos_embed_sincos.py:86-168",
        "timm": "huggingface/pytorch-image-models@aa4b5850, timm/layers/pos_embed_sincos.py:167",
        "boxes in Conditional DETR": ("transformers 5.23.0, models/conditional_detr/modeling_conditional_detr.py:1147-1180"),
        "DAB-DETR": "transformers 5.23.0, models/dab_detr/modeling_dab_detr.py:42-75",
        "Grounding DINO": "transformers 5.23.0, models/grounding_dino/modeling_grounding_dino.py:40-73",
        "NeRF's paper": "arXiv:2003.08934, equation (4)",
        "Perceiver IO": "transformers 5.23.0, models/perceiver/modeling_perceiver.py:2429-2478",
    },
)
def fourier(
    x: ArrayOf[T], bands: AnyArray, /, *, unit: Unit, arrangement: Arrangement, include: Include, dtype: DType | None = None
) -> T:
    r"""
    Return sines and cosines of every coordinate at given frequencies, optionally with the coordinates themselves.

    .. math:: \sin(u \, f_k \, x_j), \; \cos(u \, f_k \, x_j), \qquad j = 0 \dots c-1, \quad k = 0 \dots K-1

    where x_j is a coordinate, f_k a frequency (f_jk if `bands` has two axes), and u is 1, pi or 2 pi.

    Parameters
    ----------
    x : array, integer or at least float32, shape ``(*P, c)``
        The c coordinates of every point.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    bands : array, at least float32, shape ``(K,)`` or ``(c, K)``
        f, for instance :math:`2^k`. A NumPy array, or an array of the same library as `x`.
    unit : {"radians", "half_turns", "turns"}
        - ``"radians"``: The sine is taken of frequency times coordinate: u is 1. Used by NeRF's code, GLIGEN.
        - ``"half_turns"``: The sine is taken of pi times frequency times coordinate: u is pi. Used by NeRF's paper, Perceiver.
        - ``"turns"``: The sine is taken of 2 pi times frequency times coordinate: u is 2 pi. Used by boxes in Conditional DETR,
          DAB-DETR, Grounding DINO.
    arrangement : str
        The order of the columns: the word on the left varies slowest. "wave" is sine, then cosine.

        - ``"coordinate band wave"``: For each coordinate and each frequency, the sine and then the cosine. Used by NeRF's
          paper, DAB-DETR.
        - ``"band wave coordinate"``: For each frequency, the sines of all coordinates, then their cosines. Used by NeRF's code,
          GLIGEN.
        - ``"wave coordinate band"``: All sines, coordinate by coordinate, then all cosines. Used by Perceiver's code, Perceiver
          in transformers.
        - ``"coordinate wave band"``: For each coordinate, its sines at all frequencies, then its cosines. Used by lucidrains'
          perceiver-pytorch.
        - ``"wave band coordinate"``: All sines, frequency by frequency, then all cosines. Used by timm's FourierEmbed.
    include : {"none", "first", "by_coordinate"}
        Whether the result also has x.

        - ``"none"``: The result has only sines and cosines. Used by NeRF's paper, GLIGEN.
        - ``"first"``: The coordinates themselves are the first c columns. Used by NeRF's code, Perceiver, timm.
        - ``"by_coordinate"``: Each coordinate stands after its own sines and cosines. It needs an order that begins with
          "coordinate". Used by lucidrains' perceiver-pytorch.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating `x`, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*P, 2 c K)``, or ``(*P, 2 c K + c)`` with x
        Sines and cosines lie between -1 and 1.

    Raises
    ------
    ValueError
        If `x` or `bands` are half precision, shapes do not fit, a word is unknown, or `include` and `arrangement` do not go
        together.

    Notes
    -----
    NeRF's paper multiplies by pi, its code does not. Its frequencies are 1, 2, 4, ... up to 2^9 for points and 2^3 for
    directions. Perceiver uses ``linspace(1, size / 2, K)`` on every axis, with coordinates from -1 to 1. GLIGEN uses 100^(k/8).
    At whole half turns the sine is exactly 0 here. Code that multiplies by pi first leaves 1e-7 at x = 1 in float32.
    With ``sine_only``, Perceiver has the first half of the columns that it has without the coordinates (`include` "none").
    For boxes in conditional DETR, DAB-DETR and Grounding DINO, use "turns" and "coordinate band wave": coordinates (y, x, w, h)
    from 0 to 1, and frequencies ``base ** (-2 * i / F)`` with F columns for each coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> x, bands = np.asarray([0.5, -0.25]), np.asarray([1.0, 2.0])
    >>> fourier(x, bands, unit="radians", arrangement="band wave coordinate", include="first").round(4).tolist()
    [0.5, -0.25, 0.4794, -0.2474, 0.8776, 0.9689, 0.8415, -0.4794, 0.5403, 0.8776]
    """
    name = "fourier"
    check_word(name, "unit", unit, UNITS)
    check_word(name, "arrangement", arrangement, ARRANGEMENTS)
    check_word(name, "include", include, INCLUDE)
    if include == "by_coordinate" and not arrangement.startswith("coordinate"):
        msg = f"{name}: include 'by_coordinate' needs an arrangement that begins with the coordinate; got {arrangement!r}."
        raise ValueError(msg)
    check_positions(name, "x", x)
    check_frequencies(name, "bands", bands)
    c, count = _check_shapes(tuple(x.shape), tuple(bands.shape))
    xp = library(name, x=x)
    dtype = result_dtype(name, x, dtype)
    values = cast(x, wide(dtype, xp))
    if not count:  # Dask cannot reshape an empty array
        return cast(values[..., :0] if include == "none" else values, dtype)
    cos, sin = _waves(x, bands, (*x.shape[:-1], c, count), unit, dtype)
    waves = _in_order(xp.stack([sin, cos], axis=-1), arrangement)
    if include == "by_coordinate":
        waves = xp.concat([xp.reshape(waves, (*x.shape, 2 * count)), values[..., None]], axis=x.ndim)
    columns = xp.reshape(waves, (*x.shape[:-1], c * (2 * count + (include == "by_coordinate"))))
    return cast(xp.concat([values, columns], axis=x.ndim - 1) if include == "first" else columns, dtype)


def _check_shapes(x: tuple[int, ...], bands: tuple[int, ...]) -> tuple[int, int]:
    """Return the numbers of coordinates and of bands. Raise if shapes do not fit."""
    if not x or len(bands) not in (1, 2) or (len(bands) == 2 and bands[0] != x[-1]):
        msg = f"fourier: x must be (..., c), and bands (K,) or (c, K); got shapes {x} and {bands}."
        raise ValueError(msg)
    return x[-1], bands[-1]


def _waves(x: Array, bands: Array, shape: tuple[int, ...], unit: str, dtype: DType) -> tuple[Array, Array]:
    """Return cos and sin of every coordinate in every band, in `shape`."""
    xp, of_bands = namespace(x), namespace(bands)
    *lead, c, count = shape
    flat = of_bands.reshape(of_bands.broadcast_to(bands, (c, count)), (c * count,))
    each = xp.reshape(xp.broadcast_to(x[..., None], shape), (*lead, c * count))
    if unit == "radians":
        cos, sin = cos_sin_of_pairs(each, flat, dtype=dtype)
    else:
        cos, sin = cos_sin_of_half_turns(each[None, ...], flat[None, ...] * (2 if unit == "turns" else 1), dtype=dtype)
    return xp.reshape(cos, shape), xp.reshape(sin, shape)


def _in_order(waves: Array, arrangement: str) -> Array:
    """Return `waves`, whose last axes are coordinate, band and wave, with these axes in the order asked for."""
    axes: list[Any] = ["coordinate", "band", "wave"]
    for place, word in enumerate(arrangement.split()):
        at = axes.index(word)
        waves = with_axis_moved(waves, at - 3, place - 3)
        axes.insert(place, axes.pop(at))
    return waves
