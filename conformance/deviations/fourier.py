"""Deviations of Fourier features."""

from typing import Any

import numpy as np

from .compose import Function, Real, after, always, argument, deviations_of, narrowed, option


def _ordered(order: str) -> Function:
    """Return a wrap that puts columns in one order whatever is asked for, with coordinates where they fit it."""

    def wrap(function: Function) -> Function:
        def deviating(x: Any, bands: Any, /, *, include: str, **options: Any) -> Real:
            fits = include != "by_coordinate" or order.startswith("coordinate")
            return function(x, bands, include=include, **(options | ({"order": order} if fits else {})))

        return deviating

    return wrap


def _without(function: Function) -> Function:
    """The coordinates are zero where they are to be included."""

    def deviating(x: Any, bands: Any, /, **options: Any) -> Real:
        plain = function(x, bands, **options)
        c = x.shape[-1]
        if options["include"] == "first":
            return np.concatenate([0 * plain[..., :c], plain[..., c:]], axis=-1)
        return plain

    return deviating


def _at_the_end(out: Real, x: Any, bands: Any, /, **options: Any) -> Real:
    return np.roll(out, -x.shape[-1], axis=-1) if options["include"] == "first" else out


def _first_bands(bands: Any) -> Real:
    return np.broadcast_to(bands[:1], np.shape(bands)) if np.ndim(bands) == 2 else bands


def _first_row(x: Any) -> Real:
    return np.broadcast_to(x.reshape(-1, x.shape[-1])[:1].reshape(*(1,) * (x.ndim - 1), -1), x.shape) if x.size else x


_fourier = deviations_of("fourier")
FEATURES = (
    _fourier("fourier-radians", "angles are not multiplied by pi or 2 pi", option(unit=always("radians"))),
    _fourier("fourier-half-turns", "angles are always multiplied by pi", option(unit=always("half_turns"))),
    _fourier("fourier-turns", "angles are always multiplied by 2 pi", option(unit=always("turns"))),
    _fourier("fourier-band-wave-coordinate", "columns always run over bands, waves and coordinates",
             _ordered("band wave coordinate"), "That is the order of NeRF's code."),
    _fourier("fourier-wave-coordinate-band", "columns always run over waves, coordinates and bands",
             _ordered("wave coordinate band"), "That is Perceiver's order."),
    _fourier("fourier-coordinate-band-wave", "columns always run over coordinates, bands and waves",
             _ordered("coordinate band wave"), "That is the order of NeRF's paper."),
    _fourier("fourier-coordinate-wave-band", "columns always run over coordinates, waves and bands",
             _ordered("coordinate wave band"), "That is perceiver-pytorch's order."),
    _fourier("fourier-wave-band-coordinate", "columns always run over waves, bands and coordinates",
             _ordered("wave band coordinate"), "That is timm's order."),
    _fourier("fourier-input-zero", "the columns of the coordinates themselves are zero", _without),
    _fourier("fourier-input-last", "the coordinates themselves are the last columns", lambda f: lambda x, b, /, **o: _at_the_end(
        f(x, b, **o), x, b, **o)),
    _fourier("fourier-bands-of-first", "the bands of the first coordinate are used for all", argument(1, _first_bands)),
    _fourier("fourier-bands-reversed", "bands run from the last to the first", argument(1, lambda b: b[..., ::-1])),
    _fourier("fourier-octaves", "bands are always 1, 2, 4, ...", argument(
        1, lambda b: np.broadcast_to(2.0 ** np.arange(np.shape(b)[-1]), np.shape(b)))),
    _fourier("fourier-coordinates-reversed", "coordinates are exchanged", argument(0, lambda x: x[..., ::-1])),
    _fourier("fourier-bfloat16", "coordinates are held in bfloat16", argument(0, narrowed("bfloat16"))),
    _fourier("fourier-bands-bfloat16", "bands are held in bfloat16", argument(1, narrowed("bfloat16"))),
    _fourier("fourier-first-row", "the first point is used for all", argument(0, _first_row)),
)  # fmt: skip


def _halves_exchanged(out: Real, *args: Any, **options: Any) -> Real:
    half = out.shape[-1] // 2
    return np.concatenate([out[..., half:], out[..., :half]], axis=-1)


_random = deviations_of("random_fourier")
RANDOM = (
    _random("random-fourier-exchanged", "sines and cosines are exchanged", after(_halves_exchanged)),
    _random("random-fourier-sin-cos", "sines always come first", option(layout=always("sin_cos"))),
    _random("random-fourier-cos-sin", "cosines always come first", option(layout=always("cos_sin"))),
    _random("random-fourier-radians", "angles are not multiplied by 2 pi", argument(1, lambda b: b / (2 * np.pi))),
    _random("random-fourier-half-turns", "angles are multiplied by pi", argument(1, lambda b: b / 2)),
    _random("random-fourier-coordinates-reversed", "coordinates are exchanged: (y, x) for (x, y)", argument(
        0, lambda x: x[..., ::-1]), "SAM's points are (x, y)."),
    _random("random-fourier-transposed", "a square matrix is transposed", argument(
        1, lambda b: b.T if b.shape[0] == b.shape[1] else b), hint="Points are multiplied from the left: x B, not x B^T."),
    _random("random-fourier-bfloat16", "the matrix is held in bfloat16", argument(1, narrowed("bfloat16"))),
    _random("random-fourier-points-bfloat16", "points are held in bfloat16", argument(0, narrowed("bfloat16"))),
    _random("random-fourier-unit-square", "points are taken for u where they are 2u - 1", argument(0, lambda x: 2 * x - 1),
            "SAM's class takes points from 0 to 1, this operation from -1 to 1."),
    _random("random-fourier-first-row", "the first point is used for all", argument(0, _first_row)),
)  # fmt: skip

DEVIATIONS = (*FEATURES, *RANDOM)
