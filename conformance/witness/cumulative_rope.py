"""
Rotation by cumulative angles. Source: Mamba-3, arXiv:2603.15569, section 3.2, as in mamba-ssm's decode step
(mamba3_mimo_rotary_step.py, commit 37f9d02, lines 233-248), which rotates by the sum of all increments so far:

    qo0 = q0 * cos(angle) - q1 * sin(angle);   qo1 = q0 * sin(angle) + q1 * cos(angle)
"""

from typing import Any

from mpmath import mp

from .apply_rope import apply_rope
from .cumulative_angles import cumulative_angles
from .lists import at, build, shape


def cumulative_rope(x: Any, increments: Any, start: Any, *, layout: str, inverse: bool = False, lanes: str = "leading") -> Any:
    """Return `x` (*R, T, D) with its pairs rotated."""
    angles = cumulative_angles(increments, start)
    cos, sin = (build(shape(angles), lambda *index, f=f: f(at(angles, index))) for f in (mp.cos, mp.sin))
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse, lanes=lanes)
