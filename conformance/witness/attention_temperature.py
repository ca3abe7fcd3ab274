"""
Attention temperature. Sources, each the code of the model's authors or transformers 5.23:

    Llama 4, llama-models, models/llama4/model.py:  log(floor((seq_positions + 1.0) / floor_scale) + 1.0) * attn_scale + 1.0
    Ministral 3, modeling_ministral3.py:            1 + beta * log(1 + floor(positions_ids / max_position_embeddings))
    Inkling, modeling_inkling.py:                   1.0 + log_scaling_alpha * log((effective_n / n_floor).clamp(min=1.0))

with effective_n = q_positions + 1, n_floor the configuration's log_scaling_n_floor. Positions that are negative with the
offset are taken for 0.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape


def attention_temperature(positions: Any, *, form: str, beta: float, original_length: int, offset: int) -> Any:
    """Return the factor of every query, in the shape of the positions."""

    def element(*index: int) -> Any:
        n = max(at(positions, index) + offset, 0)
        grown = {"steps": 1 + (n - n % original_length) // original_length, "smooth": max(mpf(n) / original_length, mpf(1))}[
            form
        ]
        return 1 + mpf(beta) * mp.log(grown)

    return build(shape(positions), element)
