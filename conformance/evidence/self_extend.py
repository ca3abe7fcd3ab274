"""Self-Extend: cases and known mistakes."""

from typing import Any

from ..model import Case
from .self_extend_distances import METHOD
from .shared.distances import score_forms, score_gradients, scores_of
from .shared.rotary import ROTARY

USUAL: dict[str, Any] = {**METHOD.small, **ROTARY}
LEFT_OUT = (
    "again/negative-once-more",
    "again/no-keys",
    "again/one-query",
)
KERNEL: tuple[dict[str, Any], ...] = (
    {"layout": "half", "base": 10000.0, "group": 4, "window": 32, "shift": "floor"},
    {"layout": "interleaved", "base": 10000.0, "group": 4, "window": 32, "shift": "floor"},
)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *scores_of("self_extend", METHOD),
        *score_forms("self_extend", METHOD.small),
        *score_gradients("self_extend", METHOD.small),
    )
