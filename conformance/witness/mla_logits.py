"""
Logits of multi-head latent attention. Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.3:

    q_t,i = [q^C_t,i ; q^R_t,i],  k_t,i = [k^C_t,i ; k^R_t],  Softmax_j(q_t,i . k_j,i / sqrt(d_h + d^R_h))

where q^R and k^R are rotated, and k^R is one for all heads. DeepseekV3Attention in transformers has another scale with YaRN.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape
from .rope import rope


def mla_logits(
    q_nope: Any,
    q_rope: Any,
    k_nope: Any,
    k_rope: Any,
    q_positions: Any,
    k_positions: Any,
    *,
    layout: str,
    base: Any,
    scaling: Any = None,
    length: int | None = None,
    scale: Any = None,
) -> Any:
    """Return scale * (q^C . k^C + q^R . k^R), shape (..., H, Q, K)."""
    (*lead, heads, rows, content), columns, rotated = shape(q_nope), shape(k_rope)[-2], shape(q_rope)[-1]
    options = {"layout": layout, "base": base, "scaling": scaling, "length": length}
    places = build((*lead, 1, rows), lambda *index: at(q_positions, (*index[:-2], index[-1])))
    queries = rope(q_rope, places, **options)
    keys = rope(k_rope, k_positions, **options)
    factor = 1 / mp.sqrt(content + rotated) if scale is None else mpf(scale)

    def element(*index: int) -> Any:
        *batch, h, m, n = index
        lanes = [at(q_nope, (*batch, h, m, z)) * at(k_nope, (*batch, h, n, z)) for z in range(content)]
        lanes += [at(queries, (*batch, h, m, z)) * at(keys, (*batch, n, z)) for z in range(rotated)]
        return factor * mp.fsum(lanes)

    return build((*lead, heads, rows, columns), element)
