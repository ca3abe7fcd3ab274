"""Window with attention sinks: cases and known mistakes."""

from functools import partial
from typing import Any

import numpy as np

from .shared.masks import K_BEYOND, K_ROWS, NEAR, NONE, Q_BEYOND, Q_ROWS, UNSORTED, WITH, WITHOUT, offsets, window_case
from .tools import Case, Function, after, always, around, deviations_of, option, pairs
from .tools.hints import SINK_COUNT, SINK_POSITIONS

USUAL: dict[str, Any] = {"num_sinks": 2, "window": 5, "counting": "with_query"}
OTHER_VALUES = {"num_sinks": 5}
KERNEL: tuple[dict[str, Any], ...] = ({"num_sinks": 4, "window": 48, "counting": "with_query"},)


_case = partial(window_case, "lambda_window")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("few/small", (9, 3, 6), (0, 1, 2, 5, 7, 8, 9), num_sinks=2, window=3, counting=WITH, tier="smoke"),
        _case("few/unsorted", (12, 1, 20), UNSORTED, num_sinks=3, window=4, counting=WITHOUT),
        _case("few/evicted", (900, 902), (0, 1, 898, 899, 900, 901), "keys that a cache has left", num_sinks=2,
              window=3, counting=WITHOUT),
        _case("few/rows-and-heads", np.asarray(Q_ROWS)[:, None], np.asarray(K_ROWS)[:, None],
              "(B, 1, Q) and (B, 1, K)", num_sinks=1, window=3, counting=WITHOUT),
        _case("few/streaming-llm", (600, 515, 516, 131071),
              (0, 3, 4, 87, 88, 515, 516, 130558, 130559, 130560, 131071), "start_size 4, recent_size 512", num_sinks=4,
              window=512, counting=WITHOUT),
        _case("few/lm-infinite", (4105, 4106, 8192),
              (0, 9, 10, 11, 4095, 4096, 4097, 8192), "global_branch 10, local_branch 4096", num_sinks=10, window=4096,
              counting=WITH),
        _case("few/beyond-float32", Q_BEYOND, (0, 1, *K_BEYOND), num_sinks=1, window=4, counting=WITH),
        _case("few/beyond-float32-without", Q_BEYOND[:2], (0, *K_BEYOND), num_sinks=1, window=2, counting=WITHOUT),
        _case("few/no-query", NONE, (0, 1), num_sinks=1, window=2, counting=WITH),
        _case("none/nothing-else", (6, 5, 9), NEAR, "the query and the first key", num_sinks=1, window=0, counting=WITHOUT),
        _case("refused/sinks", (1, 2), (0, 1, 2), "no fewer than none", num_sinks=-1, window=2, counting=WITH, kind="reject"),
        _case("refused/fractions", (1.5, 2.0), (0.0, 1.0, 2.0), "positions are integers", num_sinks=1, window=2,
              counting=WITH, kind="reject"),
        *pairs("lambda_window", {"num_sinks": 2, "window": 3, "counting": WITHOUT}),
    )  # fmt: skip


KEPT_SINKS = "Keys with positions below num_sinks are kept in addition to the window."


@around
def _cache_sinks(function: Function, q: Any, k: Any, /, *, num_sinks: int, **options: Any) -> Any:
    """The first keys that are given are the sinks, whatever their positions."""
    return function(q, k, num_sinks=0, **options) | ((offsets(q, k) >= 0) & (np.arange(k.shape[-1]) < num_sinks))


@around
def _both_sides(function: Function, q: Any, k: Any, /, *, window: int, counting: str, **options: Any) -> Any:
    far = window - (counting == "with_query")
    return function(q, k, window=window, counting=counting, **options) | (np.abs(offsets(q, k)) <= far)


@around
def _sinks_counted(function: Function, q: Any, k: Any, /, *, num_sinks: int, window: int, counting: str) -> Any:
    return function(q, k, num_sinks=num_sinks, window=max(window - num_sinks, int(counting == "with_query")), counting=counting)


_deviation = deviations_of("lambda_window")

DEVIATIONS = (
    _deviation("lambda-no-sinks", "the first keys are not kept", option(num_sinks=always(0)), hint=KEPT_SINKS),
    _deviation("lambda-sinks-plus-1", "one key too many is kept from the beginning", option(num_sinks=lambda g: g + 1),
               hint=SINK_COUNT),
    _deviation("lambda-sinks-counted", "the sinks count as part of the window", _sinks_counted, hint=KEPT_SINKS,
               seen_in="transformers' SinkCache"),
    _deviation("lambda-sinks-of-cache", "the first keys of the call are the sinks, not those at the first positions",
               _cache_sinks, hint=SINK_POSITIONS),
    _deviation("lambda-both-sides", "keys after the query are seen as far as keys before it", _both_sides,
               hint="The window is causal: test the sign of the distance too."),
    _deviation("lambda-sinks-before", "queries before the sinks see them",
               after(lambda out, q, k, /, *, num_sinks, **o: out | (k[..., None, :] < num_sinks)),
               hint="The causal mask applies to sinks too."),
)  # fmt: skip
