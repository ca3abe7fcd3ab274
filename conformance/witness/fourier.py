"""
Fourier features. Source: NeRF, arXiv:2003.08934, equation (4), applied to each coordinate of a point:

    gamma(p) = (sin(2^0 pi p), cos(2^0 pi p), ..., sin(2^(L-1) pi p), cos(2^(L-1) pi p))

The authors' code (bmild/nerf, run_nerf_helpers.py, Embedder) loops over frequencies, then over sin and cos, each of all
coordinates, without pi, behind the input. Perceiver (transformers, generate_fourier_features) has x, then sines of the first
coordinate at all frequencies, of the second, ..., then cosines. perceiver-pytorch's fourier_encode has (sin, cos, x) for every
coordinate, and timm's FourierEmbed transposes (x, sin, cos), so that coordinates run fastest.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape


def fourier(x: Any, bands: Any, *, unit: str, arrangement: str, include: str) -> Any:
    """Return the features of the points x, shape (*P, columns)."""
    *places, c = shape(x)
    count = shape(bands)[-1]
    sine, cosine = (mp.sin, mp.cos) if unit == "radians" else (mp.sinpi, mp.cospi)

    waves, coordinates, each_band = (sine, cosine), range(c), range(count)
    order = {
        "coordinate band wave": [(j, k, f) for j in coordinates for k in each_band for f in waves],
        "coordinate wave band": [(j, k, f) for j in coordinates for f in waves for k in each_band],
        "band wave coordinate": [(j, k, f) for k in each_band for f in waves for j in coordinates],
        "wave coordinate band": [(j, k, f) for f in waves for j in coordinates for k in each_band],
        "wave band coordinate": [(j, k, f) for f in waves for k in each_band for j in coordinates],
    }[arrangement]

    def row(*where: int) -> list[Any]:
        point = _point(x, where)
        columns = list(point) if include == "first" else []
        for n, (j, k, function) in enumerate(order, start=1):
            columns.append(function((2 if unit == "turns" else 1) * at(bands, (j, k)) * point[j]))
            if include == "by_coordinate" and n % (2 * count) == 0:
                columns.append(point[j])
        return columns

    return build(places, row)


def _point(x: Any, where: tuple[int, ...]) -> list[Any]:
    for i in where:
        x = x[i]
    return [mpf(value) for value in x]
