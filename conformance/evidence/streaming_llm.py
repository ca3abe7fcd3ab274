"""StreamingLLM: cases and known mistakes."""

from typing import Any

from ..model import Case
from .shared.distances import score_forms, score_gradients, scores_of
from .shared.rotary import ROTARY
from .streaming_llm_distances import METHOD

USUAL: dict[str, Any] = {**METHOD.small, **ROTARY}
LEFT_OUT = (
    "again/negative-once-more",
    "again/no-keys",
    "again/one-query",
)
KERNEL: tuple[dict[str, Any], ...] = (
    {"layout": "half", "base": 10000.0, "sinks": 4, "window": 48, "counting": "with_query"},
    {"layout": "interleaved", "base": 10000.0, "sinks": 4, "window": 48, "counting": "with_query"},
)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *scores_of("streaming_llm", METHOD),
        *score_forms("streaming_llm", METHOD.small),
        *score_gradients("streaming_llm", METHOD.small),
    )
