"""
Axial rotary embedding of images and videos: every axis has lanes of its own and turns them as RoPE does.

interleaved             RoPE-ViT, arXiv:2403.13298, compute_axial_cis of the authors' code: pairs (2i, 2i+1), those of one axis,
                        then those of the next
half                    Qwen2-VL's vision encoder: freqs = cat(freqs_h, freqs_w), cos(cat(freqs, freqs)), rotate_half
half_by_axis            Gemma 4's vision encoder: the head is split into a part for each axis, rotate_half within the part
round_robin             Kimi's vision encoder: a pair of one axis, a pair of the next, and so on; an axis without pairs left is
                        passed over
"""

from typing import Any

from mpmath import mpf

from .axial_frequencies import axial_frequencies
from .axial_table import axial_table
from .lists import at, build, shape


def axial_rope(
    x: Any,
    positions: Any,
    *,
    dims: Any,
    base: Any,
    allocation: str,
    arrangement: str,
    layout: str,
    unit: str = "radians",
    inverse: bool = False,
) -> Any:
    """Return `x` (..., D) rotated by positions (axes, ...)."""
    *lead, width = shape(x)
    order = pairs_of(dims, arrangement)
    freqs = in_pair_order(axial_frequencies(dims, base=base, allocation=allocation, unit=unit), dims, order)
    cos, sin = axial_table(positions, freqs, sections=[dim // 2 for dim in dims], arrangement=arrangement)
    lanes = lanes_of(dims, order, layout)

    def vector(*where: int) -> list[Any]:
        out = [mpf(at(x, (*where, lane))) for lane in range(width)]
        for i, (first, second) in enumerate(lanes):
            c, s = at(cos, (*where, i)), at(sin, (*where, i))
            s = -s if inverse else s
            a, b = out[first], out[second]
            out[first], out[second] = a * c - b * s, a * s + b * c
        return out

    return build(lead, vector)


def in_pair_order(freqs: Any, dims: Any, order: list[tuple[int, int]]) -> Any:
    """Return the frequencies of one axis after the other as the pairs have them."""
    return [freqs[sum(dims[:axis]) // 2 + k] for axis, k in order]


def pairs_of(dims: Any, arrangement: str) -> list[tuple[int, int]]:
    """Return of every pair its axis, and which of the axis's frequencies it has."""
    left = [[(axis, k) for k in range(dim // 2)] for axis, dim in enumerate(dims)]
    order = []
    if arrangement == "chunked":
        order = [pair for of_axis in left for pair in of_axis]
    while arrangement == "round_robin" and any(left):
        turn = len(order) % len(dims)
        while not left[turn]:
            turn = (turn + 1) % len(dims)
        order.append(left[turn].pop(0))
    return order


def lanes_of(dims: Any, order: list[tuple[int, int]], layout: str) -> list[tuple[int, int]]:
    """Return the two lanes of every pair."""
    half = sum(dims) // 2
    lanes_of_pairs = []
    for i, (axis, k) in enumerate(order):
        lanes = {
            "half": (i, i + half),
            "interleaved": (2 * i, 2 * i + 1),
            "half_by_axis": (sum(dims[:axis]) + k, sum(dims[:axis]) + k + dims[axis] // 2),
        }[layout]
        lanes_of_pairs.append(lanes)
    return lanes_of_pairs
