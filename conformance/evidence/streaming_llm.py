"""StreamingLLM: cases and known mistakes."""

from typing import Any

from ..model import Case
from .shared.distances import score_forms, score_gradients, scores_of
from .shared.rotary import ROTARY, in_layouts
from .streaming_llm_distances import METHOD

USUAL: dict[str, Any] = {**METHOD.small, **ROTARY}
UNSTORED = ("value/usual-beyond-24-bits",)
KERNEL = in_layouts(num_sinks=4, window=48, counting="with_query")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *scores_of("streaming_llm", METHOD),
        *score_forms("streaming_llm", METHOD.small),
        *score_gradients("streaming_llm", METHOD.small),
    )
