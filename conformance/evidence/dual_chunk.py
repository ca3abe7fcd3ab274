"""Dual chunk attention (DCA): cases and known mistakes."""

from typing import Any

from ..model import Case
from .dual_chunk_distances import METHOD
from .shared.distances import score_forms, score_gradients, scores_of
from .shared.rotary import ROTARY, in_layouts

USUAL: dict[str, Any] = {**METHOD.small, **ROTARY}
KERNEL = in_layouts(chunk_size=96, window=32)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *scores_of("dual_chunk", METHOD),
        *score_forms("dual_chunk", METHOD.small),
        *score_gradients("dual_chunk", METHOD.small),
    )
