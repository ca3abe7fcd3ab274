"""
Cumulative angles. Sources: Mamba-3, arXiv:2603.15569, section 3.2, whose rotations are products of those of all tokens so far,

    R_t R_{t-1} ... R_0,   R_t a rotation by Delta_t theta_t

and mamba-ssm's decode step (mamba3_mimo_rotary_step.py, commit 37f9d02, lines 206-208):

    angle = angle_state + tanh(angle_proj) * dt * pi;   angle_state_new = angle
"""

from typing import Any

from .lists import at, build, shape


def cumulative_angles(increments: Any, start: Any) -> Any:
    """Return the angles, shape (*B, T, n), one token after another."""
    *lead, tokens, pairs = shape(increments) if len(shape(increments)) > 1 else (0, 0)

    def row(*batch: int) -> Any:
        state = [at(start, (*batch, i)) for i in range(pairs)]
        rows = []
        for t in range(tokens):
            state = [angle + at(increments, (*batch, t, i)) for i, angle in enumerate(state)]
            rows.append(state)
        return rows

    return build(lead, row)
