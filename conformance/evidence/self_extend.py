"""Self-Extend: cases and known mistakes."""

from typing import Any

from ..model import Case
from .self_extend_distances import METHOD
from .shared.distances import score_forms, score_gradients, scores_of
from .shared.rotary import ROTARY, in_layouts

USUAL: dict[str, Any] = {**METHOD.small, **ROTARY}
KERNEL = in_layouts(group=4, window=32, rounding="floor")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *scores_of("self_extend", METHOD),
        *score_forms("self_extend", METHOD.small),
        *score_gradients("self_extend", METHOD.small),
    )
