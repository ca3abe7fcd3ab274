"""
QK-norm and M-RoPE. Source: transformers 5.23, modeling_qwen3_vl.py, lines 508-513, in which q_norm comes before the rotation by
interleaved sections; and modeling_hunyuan_vl.py, lines 539-542, in which query_layernorm comes after it.
"""

from typing import Any

from .mrope import mrope
from .rms_norm import rms_norm


def norm_mrope(
    x: Any,
    weight: Any,
    positions: Any,
    *,
    sections: Any,
    arrangement: str,
    layout: str,
    base: Any,
    eps: float,
    weight_offset: int,
    precedence: str,
) -> Any:
    """Return x (..., d), normalized over its last axis and rotated by positions (axes, ...), in this order or the other."""
    rotation = {"sections": sections, "arrangement": arrangement, "layout": layout, "base": base}
    if precedence == "rope_first":
        return rms_norm(mrope(x, positions, **rotation), weight, eps=eps, weight_offset=weight_offset)
    return mrope(rms_norm(x, weight, eps=eps, weight_offset=weight_offset), positions, **rotation)
