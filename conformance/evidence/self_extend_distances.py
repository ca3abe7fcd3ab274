"""Distances of Self-Extend: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .shared.distances import GROUPED, Method, Score, after_query, changed_map, far_distances, maps_of, wrapped_maps
from .shared.rotary import ROTARY
from .tools import Case, Deviation, Wrap, always, option, pairs
from .tools.hints import BRANCH, HIDDEN, WINDOW_COUNT

METHOD = Method(
    {"group": 3, "window": 4, "rounding": "floor"}, {"group": 2, "window": 7, "rounding": "exact"},
    {"group": 5, "window": 3, "rounding": "exact"}, {"group": 8, "window": 1024, "rounding": "exact"},
    ({"group": 3, "window": 4, "rounding": "round"}, {"group": 0, "window": 4, "rounding": "floor"}),
    GROUPED, more=(
        Score("phi-2", GROUPED, {"group": 5, "window": 1024, "rounding": "floor"}, (), 80,
              {**ROTARY, "rotary_dim": 32}, "G does not divide W"),
    ),
)  # fmt: skip

USUAL: dict[str, Any] = METHOD.small
KERNEL: tuple[dict[str, Any], ...] = ({"group": 4, "window": 32, "rounding": "floor"},)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*maps_of("self_extend_distances", METHOD), *pairs("self_extend_distances", METHOD.small))


GROUP_ALIKE = "Group queries and keys alike: floor(m / g) - floor(n / g)."
GROUP_SHIFT = "Grouped queries move by w - w // g, so that they go on where the window ends."


def _taken(group: int, window: int, rounding: str) -> float:
    return window / group if rounding == "exact" else window // group


def _far(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return the map with another formula for keys that are no neighbours: neighbours are before the query."""
    return far_distances("self_extend_distances", change, both_sides=False)


def _grouped(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return Self-Extend's map with other groups: `change` takes positions and G; the window is shifted as it should be."""
    return _far(lambda m, n, w, *, group, rounding: change(m, n, group) + w - _taken(group, w, rounding))


def _without_window(m: Any, n: Any, *, group: int, window: int, rounding: str) -> Any:
    return m // group - n // group + window - _taken(group, window, rounding)


def _inclusive(m: Any, n: Any, *, group: int, window: int, rounding: str) -> Any:
    far = _without_window(m, n, group=group, window=window, rounding=rounding)
    return np.where((m >= n) & (m - n <= window), m - n, far)


DEVIATIONS = (
    Deviation("self-extend-floor", "W // G is always subtracted from the window",
              wrapped_maps(option(rounding=always("floor")), "self_extend_distances"), hint=BRANCH,
              seen_in="LongLM's decode paths"),
    Deviation("self-extend-exact", "W / G is always subtracted from the window",
              wrapped_maps(option(rounding=always("exact")), "self_extend_distances"), hint=BRANCH,
              seen_in="LongLM's prefill paths, except 715c1e3"),
    Deviation("self-extend-difference", "the difference is grouped, rather than both positions",
              _grouped(lambda m, n, g: (m - n) // g), hint=GROUP_ALIKE),
    Deviation("self-extend-unfloored", "positions are divided by G and not rounded", _grouped(lambda m, n, g: (m - n) / g),
              hint=GROUP_ALIKE),
    Deviation("self-extend-key-alone", "only keys are grouped", _grouped(lambda m, n, g: m - n // g), hint=GROUP_ALIKE),
    Deviation("self-extend-query-alone", "only queries are grouped", _grouped(lambda m, n, g: m // g - n), hint=GROUP_ALIKE),
    Deviation("self-extend-no-shift", "the window is not added to grouped queries",
              _far(lambda m, n, w, *, group, rounding: m // group - n // group), hint=GROUP_SHIFT),
    Deviation("self-extend-window-added", "the whole window is added to grouped queries: nothing is subtracted from it",
              _far(lambda m, n, w, *, group, rounding: m // group - n // group + w), hint=GROUP_SHIFT),
    Deviation("self-extend-no-window", "neighbours are grouped too", changed_map("self_extend_distances", _without_window),
              hint="Keys nearer than the window keep exact distances: the first pass is missing."),
    Deviation("self-extend-inclusive", "a key W tokens back counts as a neighbour",
              changed_map("self_extend_distances", _inclusive), hint=WINDOW_COUNT),
    Deviation("self-extend-after-query", "keys after the query keep their distance",
              after_query("self_extend_distances", lambda r, **o: r), hint=HIDDEN),
)  # fmt: skip
