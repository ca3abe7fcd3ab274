"""Relative position keys (Shaw et al.): cases and known mistakes."""

from typing import Any

from ..model import Case
from .shared.relative import WINDOW, shaw_cases, shaw_forms, shaw_gradients
from .tools.deviation import after, deviations_of
from .tools.hints import UNSCALED
from .tools.omissions import ONE_PAIR

USUAL: dict[str, Any] = WINDOW
LEFT_OUT = (*ONE_PAIR, "again/negative-once-more", "again/no-heads", "again/no-keys", "again/strided")
KERNEL: tuple[dict[str, Any], ...] = ({"left": 16, "right": 16, "order": "key_minus_query"},)

SCORE_AXES = {"q": "qd", "k": "kd", "key_table": "nd"}  # of scores and of values: queries, keys, rows of the table, lanes


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *shaw_cases("shaw_scores", SCORE_AXES),
        *shaw_forms("shaw_scores", {"q": "qd", "k": "kd", "key_table": "nd"}),
        *shaw_gradients("shaw_scores", {"q": "qd", "k": "kd", "key_table": "nd"}, "qk"),
    )


_deviation = deviations_of("shaw_scores")

DEVIATIONS = (
    _deviation("shaw-scaled", "scores are divided by sqrt(D)", after(lambda s, q, *a, **o: s / q.shape[-1] ** 0.5),
               hint=UNSCALED),
)  # fmt: skip
