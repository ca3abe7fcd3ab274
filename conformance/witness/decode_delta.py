"""
What to add to the number of cached tokens. Source: transformers 5.23.0, models/qwen2_5_omni/modeling_qwen2_5_omni.py, line 491:

    mrope_position_deltas.append(llm_positions.max() + 1 - len(input_ids))

where both are of one row, without its padding.
"""

from typing import Any

from .lists import at, build, shape


def decode_delta(positions: Any, mask: Any) -> Any:
    """Return one more than the largest position of each row's tokens, less their number."""
    axes, *rows, length = shape(positions)

    def element(*row: int) -> int:
        tokens = [t for t in range(length) if at(mask, (*row, t))]
        llm_positions = [at(positions, (axis, *row, t)) for axis in range(axes) for t in tokens]
        return max(llm_positions, default=-1) + 1 - len(tokens)

    return build(tuple(rows), element)
