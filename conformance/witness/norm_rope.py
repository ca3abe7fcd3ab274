"""
QK-norm and RoPE. Source: transformers 5.23, modeling_qwen3.py, lines 244 and 249, in which q_norm comes first; and
modeling_hunyuan_v1_dense.py, lines 197-199, in which it comes after the rotation:

    query_states = self.q_norm(...);  query_states, key_states = apply_rotary_pos_emb(query_states, key_states, cos, sin)
    query_states, key_states = apply_rotary_pos_emb(...);  query_states = self.query_layernorm(query_states)
"""

from typing import Any

from .apply_rope import apply_rope
from .rms_norm import rms_norm


def norm_rope(
    x: Any,
    weight: Any,
    cos: Any,
    sin: Any,
    *,
    layout: str,
    eps: float,
    weight_offset: int,
    precedence: str,
    lanes: str = "leading",
) -> Any:
    """Return x (..., d), normalized over its last axis and rotated by a table, in this order or the other."""
    if precedence == "rope_first":
        return rms_norm(apply_rope(x, cos, sin, layout=layout, lanes=lanes), weight, eps=eps, weight_offset=weight_offset)
    return apply_rope(rms_norm(x, weight, eps=eps, weight_offset=weight_offset), cos, sin, layout=layout, lanes=lanes)
