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

    def wave(function: Any, point: Any, j: int, k: int) -> Any:
        return function((2 if unit == "turns" else 1) * at(bands, (j, k)) * point[j])

    def row(*where: int) -> list[Any]:
        point = _point(x, where)
        found = list(point) if include == "first" else []
        if arrangement == "coordinate band wave":
            for j in range(c):
                for k in range(count):
                    found += [wave(sine, point, j, k), wave(cosine, point, j, k)]
                found += [point[j]] if include == "by_coordinate" else []
        elif arrangement == "coordinate wave band":
            for j in range(c):
                found += [wave(sine, point, j, k) for k in range(count)] + [wave(cosine, point, j, k) for k in range(count)]
                found += [point[j]] if include == "by_coordinate" else []
        elif arrangement == "band wave coordinate":
            for k in range(count):
                found += [wave(sine, point, j, k) for j in range(c)] + [wave(cosine, point, j, k) for j in range(c)]
        elif arrangement == "wave coordinate band":
            for function in (sine, cosine):
                found += [wave(function, point, j, k) for j in range(c) for k in range(count)]
        elif arrangement == "wave band coordinate":
            for function in (sine, cosine):
                found += [wave(function, point, j, k) for k in range(count) for j in range(c)]
        else:
            raise ValueError(arrangement)
        return found

    return build(places, row)


def _point(x: Any, where: tuple[int, ...]) -> list[Any]:
    for i in where:
        x = x[i]
    return [mpf(value) for value in x]
