"""Dual chunk attention (DCA): cases and known mistakes."""

from typing import Any

from ..model import Case
from .dual_chunk_distances import METHOD
from .shared.distances import score_forms, score_gradients, scores_of
from .shared.rotary import ROTARY

USUAL: dict[str, Any] = {**METHOD.small, **ROTARY}
LEFT_OUT = (
    "again/negative-once-more",
    "again/no-keys",
    "again/one-query",
)
KERNEL: tuple[dict[str, Any], ...] = (
    {"layout": "half", "base": 10000.0, "chunk_size": 96, "local_size": 32},
    {"layout": "interleaved", "base": 10000.0, "chunk_size": 96, "local_size": 32},
)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *scores_of("dual_chunk", METHOD),
        *score_forms("dual_chunk", METHOD.small),
        *score_gradients("dual_chunk", METHOD.small),
    )
