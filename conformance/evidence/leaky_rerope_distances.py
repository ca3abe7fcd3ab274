"""Distances of Leaky ReRoPE: cases and known mistakes."""

from typing import Any

from .shared.distances import Method, after_query, far_distances, maps_of
from .tools import Case, Deviation, pairs
from .tools.hints import HIDDEN

METHOD = Method(
    {"window": 4, "factor": 3}, {"window": 7, "factor": 2}, {"window": 1, "factor": 5}, {"window": 512, "factor": 16},
    ({"window": 0, "factor": 3}, {"window": 4, "factor": 0}),
)  # fmt: skip

USUAL: dict[str, Any] = METHOD.small
KERNEL: tuple[dict[str, Any], ...] = ({"window": 32, "factor": 4},)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*maps_of("leaky_rerope_distances", METHOD), *pairs("leaky_rerope_distances", METHOD.small))


DEVIATIONS = (
    Deviation("leaky-stops", "distances stop at the window, as in ReRoPE",
              far_distances("leaky_rerope_distances", lambda m, n, w, *, factor: w + 0 * (m - n)),
              hint="Beyond the window distances go on, divided by the factor."),
    Deviation("leaky-no-offset", "distances beyond the window are (m - n)/k",
              far_distances("leaky_rerope_distances", lambda m, n, w, *, factor: (m - n) / factor),
              hint="The window's w(k - 1) is not added to the query's position."),
    Deviation("leaky-offset-wk", "distances beyond the window are w + (m - n)/k",
              far_distances("leaky_rerope_distances", lambda m, n, w, *, factor: w + (m - n) / factor),
              hint="The query's offset is wk rather than w(k - 1)."),
    Deviation("leaky-whole", "distances beyond the window are rounded down",
              far_distances("leaky_rerope_distances", lambda m, n, w, *, factor: w + (m - n - w) // factor),
              hint="Distances beyond the window are fractions: look for a floor."),
    Deviation("leaky-after-query", "keys after the query keep their distance, even beyond the window",
              after_query("leaky_rerope_distances", lambda r, **o: r), hint=HIDDEN),
)  # fmt: skip
