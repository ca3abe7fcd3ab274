"""Distances of ReRoPE: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.distances import Method, after_query, far_distances, maps_of
from .tools import Case, Deviation, pairs
from .tools.hints import HIDDEN

METHOD = Method({"window": 4}, {"window": 7}, {"window": 1}, {"window": 512}, ({"window": 0}, {"window": -4}))

USUAL: dict[str, Any] = METHOD.small
KERNEL: tuple[dict[str, Any], ...] = ({"window": 32},)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*maps_of("rerope_distances", METHOD), *pairs("rerope_distances", METHOD.small))


SECOND_PASS = "In the second pass queries rotate by w and keys do not."

DEVIATIONS = (
    Deviation("rerope-clipped", "keys after the query keep their distance, even beyond the window",
              after_query("rerope_distances", lambda r, **o: r), hint=HIDDEN, seen_in="rerope's decode path"),
    Deviation("rerope-both-sides", "distances are clipped on both sides: keys far after the query are at -w",
              after_query("rerope_distances", lambda r, *, window: np.maximum(r, -window)), hint=HIDDEN),
    Deviation("rerope-key-turned", "keys are rotated in the second pass too: w - n",
              far_distances("rerope_distances", lambda m, n, w: w - n + 0 * m), hint=SECOND_PASS),
    Deviation("rerope-query-at-m", "the window is added to the query's position in the second pass: m + w",
              far_distances("rerope_distances", lambda m, n, w: m + w + 0 * n), hint=SECOND_PASS),
    Deviation("rerope-unturned", "nothing is rotated in the second pass",
              far_distances("rerope_distances", lambda m, n, w: 0 * (m - n)), hint=SECOND_PASS),
)  # fmt: skip
