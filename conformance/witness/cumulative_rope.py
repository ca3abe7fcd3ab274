"""
Rotation by cumulative angles. Source: Mamba-3, arXiv:2603.15569, section 3.2, as in mamba-ssm's decode step
(mamba3_mimo_rotary_step.py, commit 37f9d02, lines 233-248), which rotates by the sum of all increments so far:

    qo0 = q0 * cos(angle) - q1 * sin(angle);   qo1 = q0 * sin(angle) + q1 * cos(angle)
"""

from typing import Any

from mpmath import mp

from .apply_rope import apply_rope
from .cumulative_angles import cumulative_angles
from .lists import at, build_both, shape


def cumulative_rope(x: Any, increments: Any, start: Any, *, layout: str, inverse: bool = False, lanes: str = "leading") -> Any:
    """Return `x` (*R, T, D) with its pairs rotated."""
    angles = cumulative_angles(increments, start)
    cos, sin = build_both(shape(angles), lambda *index: mp.cos_sin(at(angles, index)))
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse, lanes=lanes)
