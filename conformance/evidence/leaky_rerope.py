"""Leaky ReRoPE: cases and known mistakes."""

from typing import Any

from ..model import Case
from .leaky_rerope_distances import METHOD
from .shared.distances import score_forms, score_gradients, scores_of
from .shared.rotary import ROTARY, in_layouts

USUAL: dict[str, Any] = {**METHOD.small, **ROTARY}
KERNEL = in_layouts(window=32, factor=4)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *scores_of("leaky_rerope", METHOD),
        *score_forms("leaky_rerope", METHOD.small),
        *score_gradients("leaky_rerope", METHOD.small),
    )
