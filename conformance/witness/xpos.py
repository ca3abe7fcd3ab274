"""
xPos. Source: Sun et al., A Length-Extrapolatable Transformer, arXiv:2212.10554, and the authors' torchscale.

There x cos and rotate_every_two(x) sin have the scale on both cos and sin (apply_rotary_pos_emb).
"""

from typing import Any

from .apply_rope import pair
from .lists import at, build, shape
from .rope_frequencies import rope_frequencies
from .rope_table import rope_table
from .xpos_scales import xpos_scales


def xpos(
    x: Any,
    positions: Any,
    *,
    role: str,
    layout: str,
    base: Any,
    centre: int,
    rotary_dim: int | None = None,
    scale_base: Any = 512.0,
    gamma: Any = 0.4,
) -> Any:
    """Return `x` (..., d) rotated and scaled by its positions, which broadcast against x.shape[:-1]."""
    *lead, d = shape(x)
    r = d if rotary_dim is None else rotary_dim
    inv_freq, factor = rope_frequencies(r, base=base)
    cos, sin = rope_table(positions, inv_freq, attention_factor=factor)
    scale = xpos_scales(positions, r, role=role, centre=centre, scale_base=scale_base, gamma=gamma)

    def vector(*where: int) -> list[Any]:
        out = [+at(x, (*where, lane)) for lane in range(d)]
        for i in range(r // 2):
            read, write = pair(layout, i, r)
            c, s, grown = (at(table, (*where, i)) for table in (cos, sin, scale))
            a, b = (at(x, (*where, lane)) for lane in read)
            out[write[0]] = (a * c - b * s) * grown
            out[write[1]] = (b * c + a * s) * grown
        return out

    return build(lead, vector)
