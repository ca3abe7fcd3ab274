"""Distances of StreamingLLM: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .shared.distances import SMALL, STREAMED, Method, Score, changed_map, maps_of, wrapped_maps
from .shared.rotary import MIXED, ROTARY
from .tools import Case, Deviation, Wrap, always, option, pairs
from .tools.hints import BRANCH, SINK_COUNT, SINK_POSITIONS

FULL = (7, 8, 9, 10, 11), (1, 2, 3, 0)
METHOD = Method(
    {"num_sinks": 2, "window": 4, "counting": "with_query"}, {"num_sinks": 3, "window": 7, "counting": "without_query"},
    {"num_sinks": 1, "window": 1, "counting": "with_query"}, {"num_sinks": 4, "window": 2000, "counting": "without_query"},
    ({"num_sinks": -1, "window": 4, "counting": "with_query"}, {"num_sinks": 2, "window": 0, "counting": "with_query"}),
    STREAMED, more=(
        Score("full-without-query", FULL, {"num_sinks": 3, "window": 6, "counting": "without_query"}, (2, 1), 4,
              ROTARY, "a cache fills"),
        Score("no-sinks", SMALL, {"num_sinks": 0, "window": 3, "counting": "without_query"}, (), 6, MIXED,
              "nothing is placed otherwise"),
    ),
)  # fmt: skip

USUAL: dict[str, Any] = METHOD.small
KERNEL: tuple[dict[str, Any], ...] = ({"num_sinks": 4, "window": 48, "counting": "with_query"},)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*maps_of("streaming_llm_distances", METHOD), *pairs("streaming_llm_distances", METHOD.small))


def _streamed(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return StreamingLLM's map with another formula: `change` takes positions, g and r."""

    def formula(m: Any, n: Any, *, num_sinks: int, window: int, counting: str) -> Any:
        return change(m, n, num_sinks, window - (counting == "with_query"))

    return changed_map("streaming_llm_distances", formula)


DEVIATIONS = (
    Deviation("streaming-with-query", "the window always counts the query",
              wrapped_maps(option(counting=always("with_query")), "streaming_llm_distances"), hint=BRANCH),
    Deviation("streaming-without-query", "the window never counts the query",
              wrapped_maps(option(counting=always("without_query")), "streaming_llm_distances"), hint=BRANCH),
    Deviation("streaming-sinks-plus-1", "one key too many counts as a sink",
              _streamed(lambda m, n, g, r: np.where(n <= g, np.minimum(m, g + r) - n, m - n)), hint=SINK_COUNT),
    Deviation("streaming-window-alone", "the cache has as many keys as the window: the sinks are among them",
              _streamed(lambda m, n, g, r: np.where(n < g, np.minimum(m, r) - n, m - n)),
              hint="The cache has the sinks and the window: their sizes add.", seen_in="transformers' SinkCache"),
    Deviation("streaming-sinks-of-cache", "the first keys of the call are the sinks, not those at the first positions",
              _streamed(lambda m, n, g, r: np.where(np.arange(n.shape[-1]) < g, np.minimum(m, g + r) - n, m - n)),
              hint=SINK_POSITIONS),
    Deviation("streaming-query-alone", "queries get their place in the cache for all keys, but keys keep their positions",
              _streamed(lambda m, n, g, r: np.minimum(m, g + r) - n),
              hint="Only distances to sinks change: in the cache, recent keys move with the query."),
    Deviation("streaming-clamped", "distances to sinks are clamped to the window, as in LM-Infinite",
              _streamed(lambda m, n, g, r: np.where(n < g, np.minimum(m - n, r + 1), m - n)),
              hint="A sink is min(m, g + r) - n away, each at its own place.", seen_in="arXiv:2308.16137"),
)  # fmt: skip
