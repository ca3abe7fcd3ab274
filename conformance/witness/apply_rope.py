"""
Rotating the pairs of lanes. Source: RoFormer, arXiv:2104.09864, equation (34), whose pairs are (2i, 2i+1):

    (x1, x2, x3, x4, ...) * (cos, cos, cos, cos, ...) + (-x2, x1, -x4, x3, ...) * (sin, sin, sin, sin, ...)

GPT-NeoX and transformers' rotate_half pair lane i with lane i + r/2. DeepSeek-V3 in transformers reads (2i, 2i+1) and
writes (i, i + r/2). The inverse is the transposed matrix: it reads where the map wrote, writes where it read, and turns
the other way.

DeepSeek-V4 in transformers rotates x[..., -r:], all others x[..., :r].
"""

from typing import Any

from .lists import at, build, shape


def pair(layout: str, i: int, r: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the two lanes that pair `i` of r/2 is read from, and the two that it is written to."""
    adjacent, split = (2 * i, 2 * i + 1), (i, i + r // 2)
    return {
        "interleaved": (adjacent, adjacent),
        "half": (split, split),
        "interleaved_to_half": (adjacent, split),
    }[layout]


def apply_rope(x: Any, cos: Any, sin: Any, *, layout: str, inverse: bool = False, lanes: str = "leading") -> Any:
    """Return `x` (..., d) with its first or last r lanes rotated by cos and sin (*P, r/2), the others unchanged."""
    *lead, d = shape(x)
    pairs = shape(cos)[-1]
    skipped = d - 2 * pairs if lanes == "trailing" else 0

    def vector(*where: int) -> list[Any]:
        row = [at(x, (*where, lane)) for lane in range(d)]
        out = [*row]
        for i in range(pairs):
            read, write = pair(layout, i, 2 * pairs)
            c, s = at(cos, (*where, i)), at(sin, (*where, i))
            if inverse:
                read, write, s = write, read, -s
            a, b = (row[skipped + lane] for lane in read)
            out[skipped + write[0]] = a * c - b * s
            out[skipped + write[1]] = b * c + a * s
        return out

    return build(lead, vector)
