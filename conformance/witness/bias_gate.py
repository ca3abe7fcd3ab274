"""
The gate of WavLM's relative position bias. Source: Chen et al., arXiv:2110.13900, section III.A, as transformers 5.23.0 has it,
models/wavlm/modeling_wavlm.py, lines 172-181: a linear map to 8 numbers, added four by four, and

    gate_a, gate_b = sigmoid(...);   gate_output = gate_a * (gate_b * const - 1.0) + 2.0
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def bias_gate(x: Any, weight: Any, offset: Any, constant: Any) -> Any:
    """Return the gates, shape (*B, H, Q), one at a time."""
    *rows, width = shape(x)

    def element(*index: int) -> Any:
        states = [mp.fsum(row[d] * at(x, (*index, d)) for d in range(width)) + b for row, b in zip(weight, offset, strict=True)]
        reset, update = (1 / (1 + mp.exp(-mp.fsum(states[first : first + 4]))) for first in (0, 4))
        return reset * (update * constant[index[-2]] - 1) + 2

    return build(rows, element)
