"""Leaky ReRoPE: cases and known mistakes."""

from typing import Any

from ..model import Case
from .leaky_rerope_distances import METHOD
from .shared.distances import score_forms, score_gradients, scores_of
from .shared.rotary import ROTARY

USUAL: dict[str, Any] = {**METHOD.small, **ROTARY}
LEFT_OUT = (
    "again/negative-once-more",
    "again/no-keys",
    "again/one-query",
)
KERNEL: tuple[dict[str, Any], ...] = (
    {"layout": "half", "base": 10000.0, "window": 32, "factor": 4},
    {"layout": "interleaved", "base": 10000.0, "window": 32, "factor": 4},
)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *scores_of("leaky_rerope", METHOD),
        *score_forms("leaky_rerope", METHOD.small),
        *score_gradients("leaky_rerope", METHOD.small),
    )
