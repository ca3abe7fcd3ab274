"""
Rotated values with the output rotated back. Source: DeepSeek-V4 in transformers 5.23 (DeepseekV4Attention.forward):

    kv = apply_rotary_pos_emb(kv, cos, sin); attn_output = softmax(...) kv; apply_rotary_pos_emb(attn_output, cos, -sin)

A pair of a value at position n thus reaches the output at position m turned by the angle of n less that of m. It goes back to
the lanes that it was read from, times the square of the table's factor.
"""

from typing import Any

from mpmath import mp

from .apply_rope import pair
from .lists import at, build, shape
from .rope_frequencies import rope_frequencies


def rotated_values(
    weights: Any,
    v: Any,
    q_positions: Any,
    k_positions: Any,
    *,
    layout: str,
    base: Any,
    rotary_dim: int | None = None,
    scaling: Any = None,
    length: int | None = None,
    lanes: str = "leading",
) -> Any:
    """Return the sum over keys of weights times values, each turned by its distance from the query, shape (..., Q, D)."""
    (*lead, rows, columns), width = shape(weights), shape(v)[-1]
    r = width if rotary_dim is None else rotary_dim
    inv_freq, factor = rope_frequencies(r, base=base, scaling=scaling, length=length)
    start = width - r if lanes == "trailing" else 0

    def value(where: tuple[int, ...], n: int, lane: int) -> Any:
        if len(shape(v)) < 3:
            return v[n][lane]
        *batch, head = where
        return at(v, (*batch, head // (lead[-1] // shape(v)[-3]), n, lane))

    def place(p: Any, where: tuple[int, ...], own: int, token: int) -> Any:
        if len(shape(p)) < 2:
            return p[0 if len(p) == 1 else token]
        *batch, head = where
        return at(p, (*batch, head // (lead[-1] // own), token))

    def vector(*index: int) -> list[Any]:
        where, m = index[:-1], index[-1]
        key_heads = shape(v)[-3] if len(shape(v)) > 2 else 1
        out = [mp.fsum(at(weights, (*index, n)) * value(where, n, lane) for n in range(columns)) for lane in range(width)]
        for i in range(r // 2):
            a, b = (start + lane for lane in pair(layout, i, r)[0])
            out[a] = out[b] = mp.mpf(0)
            for n in range(columns):
                far = place(k_positions, where, key_heads, n) - place(q_positions, where, lead[-1] if lead else 1, m)
                c, s = (wave * at(weights, (*index, n)) * factor**2 for wave in mp.cos_sin(far * inv_freq[i]))
                x, y = value(where, n, a), value(where, n, b)
                out[a], out[b] = out[a] + x * c - y * s, out[b] + y * c + x * s
        return out

    return build((*lead, rows), vector)
