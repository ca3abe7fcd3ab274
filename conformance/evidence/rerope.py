"""Rectified RoPE (ReRoPE): cases and known mistakes."""

from typing import Any

from posref.scaling import DynamicNTK

from ..model import Case
from .rerope_distances import METHOD
from .shared.distances import SMALL, TURNED, Score, score_forms, score_gradients, scores_of
from .shared.rotary import MIXED, ROTARY, in_layouts

USUAL: dict[str, Any] = {**METHOD.small, **ROTARY}
KERNEL = in_layouts(window=32)

REROPE_ROTATIONS = (  # what the rotation is given is the same for all methods: one is asked for all of it
    Score("dynamic", SMALL, METHOD.small, (2, 2), 6, {**ROTARY, "base": 100.0, "scaling": DynamicNTK(2.0, 16), "length": 41}),
    Score("53-bits", TURNED, METHOD.small, (), 6, MIXED, bits=53),
)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *scores_of("rerope", METHOD, *REROPE_ROTATIONS),
        *score_forms("rerope", METHOD.small),
        *score_gradients("rerope", METHOD.small),
    )
