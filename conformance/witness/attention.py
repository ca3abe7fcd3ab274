"""
Scaled dot-product attention. Source: Vaswani et al., arXiv:1706.03762, equation (1), and section 3.2.3 for the mask:

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V,  what may not be attended to set to -inf in the softmax's input

exp(-inf) is 0, so that a key which is not allowed is left out of both sums; with no key left the output is 0, not 0/0.

Sinks: openai/gpt-oss, gpt_oss/torch/model.py, sdpa, puts one learned logit for each head beside those of the keys, takes the
softmax of all, and drops its column: QK = cat([QK, S], dim=-1); W = softmax(QK, dim=-1); W = W[..., :-1].
"""

from typing import Any

from mpmath import mp, mpf

from .attention_logits import attention_logits, repeat_heads
from .lists import at, broadcast, build, shape


def attention(
    q: Any, k: Any, v: Any, *, bias: Any = None, mask: Any = None, scale: Any = None, softcap: Any = None, sinks: Any = None
) -> Any:
    """Return softmax(logits) v over the keys that `mask` allows, shape (..., Q, D)."""
    logits, v = attention_logits(q, k, bias=bias, scale=scale, softcap=softcap), repeat_heads(v, q)
    mask = True if mask is None else mask
    *v_lead, columns, width = shape(v)
    *lead_and_rows, _ = broadcast(shape(logits), shape(mask), (*v_lead, 1, 1))

    def vector(*row: int) -> list[Any]:
        lead = row[:-1]
        allowed = [n for n in range(columns) if at(mask, (*row, n))]
        if not allowed:
            return [mpf(0)] * width
        weight = {n: mp.exp(at(logits, (*row, n))) for n in allowed}
        beside = [] if sinks is None else [mp.exp(sinks[row[-2] if len(row) > 1 else 0])]
        total = mp.fsum([*weight.values(), *beside])
        return [mp.fsum(weight[n] * at(v, (*lead, n, z)) for n in allowed) / total for z in range(width)]

    return build(lead_and_rows, vector)
