"""
LayerNorm and RoPE. Source: transformers 5.23, modeling_deepseek_v32.py, lines 171 and 214 to 221, and Ba et al.,
arXiv:1607.06450, equations (3) and (4):

    mu = 1/H sum_i a_i,   sigma = sqrt(1/H sum_i (a_i - mu)^2),   h = g / sigma (a - mu) + b

torch.nn.LayerNorm adds eps to sigma^2.
"""

from typing import Any

from mpmath import mpf, sqrt

from .apply_rope import apply_rope
from .lists import at, build, shape


def layer_norm_rope(
    x: Any, weight: Any, bias: Any, cos: Any, sin: Any, *, layout: str, eps: float, precedence: str, lanes: str = "leading"
) -> Any:
    """Return x (..., d), normalized over its last axis and rotated by a table, in this order or the other."""
    if precedence == "rope_first":
        return _normed(apply_rope(x, cos, sin, layout=layout, lanes=lanes), weight, bias, eps)
    return apply_rope(_normed(x, weight, bias, eps), cos, sin, layout=layout, lanes=lanes)


def _normed(x: Any, g: Any, b: Any, eps: float) -> Any:
    *lead, n = shape(x)

    def row(*where: int) -> list[Any]:
        a = [at(x, (*where, i)) for i in range(n)]
        mu = sum(a, mpf(0)) / n
        sigma = sqrt(sum(((number - mu) ** 2 for number in a), mpf(0)) / n + mpf(eps))
        return [g[i] / sigma * (a[i] - mu) + b[i] for i in range(n)]

    return build(lead, row)
