"""
The logits of attention. Source: Vaswani et al., arXiv:1706.03762, equation (1): Q K^T / sqrt(d_k); plus a bias.

The bias is not scaled. Fewer key heads than query heads are repeated in blocks: Ainslie et al., arXiv:2305.13245,
section 2.2 (grouped queries), and repeat_kv in Meta's llama-models.

The softcap: Gemma 2, arXiv:2408.00118, section 2: logits <- soft_cap * tanh(logits / soft_cap), before the mask in its code.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, broadcast, build, shape


def repeat_heads(x: Any, q: Any) -> Any:
    """Return keys or values `x` with as many heads (axis -3) as `q` has: query head h uses head h // (Hq // Hk)."""
    if len(shape(x)) < 3 or len(shape(q)) < 3 or shape(x)[-3] >= shape(q)[-3]:
        return x
    (*lead, groups, length, width), heads = shape(x), shape(q)[-3]

    def element(*index: int) -> Any:
        *batch, h, n, z = index
        return at(x, (*batch, h // (heads // groups), n, z))

    return build((*lead, heads, length, width), element)


def attention_logits(q: Any, k: Any, *, bias: Any = None, scale: Any = None, softcap: Any = None) -> Any:
    """Return scale * q.k + bias, shape (..., Q, K), the product within the softcap."""
    k = repeat_heads(k, q)
    (*q_lead, rows, width), (*k_lead, columns, _) = shape(q), shape(k)
    bias = mpf(0) if bias is None else bias
    factor = 1 / mp.sqrt(width) if scale is None else mpf(scale)

    def element(*index: int) -> Any:
        *lead, m, n = index
        dot = mp.fsum(at(q, (*lead, m, z)) * at(k, (*lead, n, z)) for z in range(width))
        logit = factor * dot if softcap is None else mpf(softcap) * mp.tanh(factor * dot / mpf(softcap))
        return logit + at(bias, index)

    return build(broadcast((*q_lead, rows, columns), (*k_lead, rows, columns), shape(bias)), element)
