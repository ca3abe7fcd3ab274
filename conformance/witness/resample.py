"""
A learned table on another grid, as PyTorch's interpolate has it, by taps.

Sources: pytorch, aten/src/ATen/native/UpSample.h, area_pixel_compute_scale, area_pixel_compute_source_index,
cubic_convolution1 and cubic_convolution2 (A = -0.75); native/cpu/UpSampleKernel.cpp, aa_filter and
_compute_indices_min_size_weights_aa (a = -0.5); transformers 5.23.0, vision_utils.py, _interpolation_axis_taps_weights, which
also has padding "zeros". DINOv2, interpolate_pos_encoding: scale_factor = (w0 + interpolate_offset) / M.

All coordinates and weights are fractions.
"""

from fractions import Fraction
from itertools import product
from math import floor, prod
from typing import Any

from mpmath import mpf

HALF = Fraction(1, 2)


def resample(
    table: Any,
    size: Any,
    *,
    old_size: Any,
    prefix: int,
    method: str,
    align_corners: bool,
    antialias: bool,
    interpolate_offset: float | None = None,
    boundary: str = "border",
) -> Any:
    """Return the rows of the prefix, and a row for every cell of the new grid."""
    axes = []
    for n, m in zip(old_size, size, strict=True):
        scale = area_scale(n, m, align_corners, interpolate_offset)
        if antialias:
            axes.append([antialiased(scale, n, i, method) for i in range(m)])
        else:
            axes.append([taps(scale, n, i, method, align_corners, boundary) for i in range(m)])
    rows = [list(row) for row in table[:prefix]]
    for cell in product(*axes):
        terms = []
        for corner in product(*(along.items() for along in cell)):
            flat = 0
            for n, (j, _) in zip(old_size, corner, strict=True):
                flat = flat * n + j
            weight = prod((w for _, w in corner), start=Fraction(1))
            terms.append((table[prefix + flat], mpf(weight.numerator) / weight.denominator))
        rows.append([sum((row[lane] * w for row, w in terms), mpf(0)) for lane in range(len(table[0]))])
    return rows


def area_scale(n: int, m: int, align_corners: bool, interpolate_offset: float | None) -> Fraction:
    """Return old cells per new cell."""
    if align_corners:
        return Fraction(n - 1, m - 1) if m > 1 else Fraction(0)
    if interpolate_offset is None:
        return Fraction(n, m)
    return 1 / ((m + Fraction(interpolate_offset)) / n)


def taps(scale: Fraction, n: int, i: int, method: str, align_corners: bool, boundary: str) -> dict[int, Fraction]:
    """Return the weights of old cells in new cell i: of 2 or 4 taps around where it lies."""
    source = scale * i if align_corners else scale * (i + HALF) - HALF
    first = floor(source)
    t = source - first
    if method == "linear":
        around = [(first, 1 - t), (first + 1, t)]
    else:
        a = Fraction(-3, 4)
        weights = convolution2(t + 1, a), convolution1(t, a), convolution1(1 - t, a), convolution2(2 - t, a)
        around = list(zip(range(first - 1, first + 3), weights, strict=True))
    by_tap: dict[int, Fraction] = {}
    for j, weight in around:
        tap = min(max(j, 0), n - 1) if boundary == "border" else j
        if 0 <= tap < n:
            by_tap[tap] = by_tap.get(tap, Fraction(0)) + weight
    return by_tap


def antialiased(scale: Fraction, n: int, i: int, method: str) -> dict[int, Fraction]:
    """Return the weights of the old cells within the support of the filter, which add up to 1."""
    wide = max(scale, Fraction(1))
    support = (1 if method == "linear" else 2) * wide
    centre = scale * (i + HALF)
    first = max(int(centre - support + HALF), 0)
    last = min(int(centre + support + HALF), n)
    weights = {j: of_filter(abs(j - centre + HALF) / wide, method) for j in range(first, last)}
    total = sum(weights.values(), Fraction(0))
    return {j: weight / total for j, weight in weights.items()}


def of_filter(x: Fraction, method: str) -> Fraction:
    """Return the filter at a distance."""
    if method == "linear":
        return max(1 - x, Fraction(0))
    a = -HALF
    return convolution1(x, a) if x < 1 else convolution2(x, a) if x < 2 else Fraction(0)


def convolution1(x: Fraction, a: Fraction) -> Fraction:
    """Return Keys' kernel from 0 to 1."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


def convolution2(x: Fraction, a: Fraction) -> Fraction:
    """Return Keys' kernel from 1 to 2."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
