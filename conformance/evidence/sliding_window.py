"""Sliding window attention: cases and known mistakes."""

from functools import partial
from typing import Any

import numpy as np

from .shared.masks import K_BEYOND, K_ROWS, NEAR, NONE, Q_BEYOND, Q_ROWS, WITH, WITHOUT, both_positions, for_each, window_case
from .tools import Case, Deviation, Function, always, deviations_of, option, pairs
from .tools.hints import SIGN, WINDOW_COUNT

USUAL: dict[str, Any] = {"window": 5, "counting": "with_query", "sides": "causal"}
KERNEL = tuple({"window": 48, "counting": "with_query", "sides": sides} for sides in ("causal", "both"))


_case = partial(window_case, "sliding_window")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("causal/itself", (2, 5, 3), NEAR, "the query alone", window=1, counting=WITH, sides="causal"),
        _case("causal/nothing-else", (2, 5, 3, 8), NEAR, "the query alone", window=0, counting=WITHOUT, sides="causal"),
        _case("causal/rows-and-heads", np.asarray(Q_ROWS)[:, None], np.asarray(K_ROWS)[:, None],
              "(B, 1, Q) and (B, 1, K), for (B, H, Q, K)", window=4, counting=WITHOUT, sides="causal"),
        _case("causal/gpt-oss", (127, 128, 131071),
              (0, 1, 127, 128, 130943, 130944, 130945, 131071, 131072), window=128, counting=WITH, sides="causal"),
        _case("causal/mistral", (4095, 4096, 4097, 32767),
              (0, 1, 2, 4095, 28670, 28671, 28672, 32767), "as Mistral's own code has it", window=4096, counting=WITHOUT,
              sides="causal"),
        _case("causal/beyond-float32", Q_BEYOND, K_BEYOND, window=4, counting=WITH, sides="causal"),
        _case("causal/no-query", NONE, (0, 1), window=2, counting=WITH, sides="causal"),
        _case("both/modernbert", (70, 0, 300), (0, 5, 6, 63, 64, 65, 134, 135, 364, 365),
              "local_attention 128: 64 on each side", window=64, counting=WITHOUT, sides="both"),
        _case("both/beyond-float32", Q_BEYOND[:2], K_BEYOND, window=2, counting=WITHOUT, sides="both"),
        _case("refused/window", (1, 2), (0, 1, 2), "with its query a window has a key at least", window=0,
              counting=WITH, sides="causal", kind="reject"),
        _case("refused/fractions", (1.5, 2.0), (0.0, 1.0, 2.0), "positions are integers", window=2, counting=WITH,
              sides="causal", kind="reject"),
        _case("refused/counting", (1, 2), (0, 1, 2), "no such word", window=2, counting="inclusive", sides="causal",
              kind="reject"),
        *pairs("sliding_window", {"window": 3, "counting": WITH, "sides": "causal"}),
    )  # fmt: skip


def _of_distance(function: Function, q: Any, k: Any, /, options: dict[str, Any], more: int) -> Any:
    """Return the mask whose largest distance is that which is asked and `more`; below 0 no key is seen."""
    distance = options["window"] - (options["counting"] == "with_query") + more
    seen = function(q, k, **options | {"window": max(distance, 0) + 1, "counting": "with_query"})
    return seen if distance >= 0 else np.zeros_like(seen)


_deviation = deviations_of("sliding_window")

DEVIATIONS = (
    Deviation("window-after", "the window lies after the query", for_each(("sliding_window",), both_positions(lambda p: -p)),
              hint=SIGN),
    _deviation("window-one-shorter", "the window is one key shorter on each side",
               lambda f: lambda q, k, /, **o: _of_distance(f, q, k, o, -1), hint=WINDOW_COUNT),
    _deviation("window-one-longer", "the window is one key longer on each side",
               lambda f: lambda q, k, /, **o: _of_distance(f, q, k, o, 1), hint=WINDOW_COUNT),
    _deviation("window-half-on-both-sides", "the window is half as wide on both sides: |q - k| <= window // 2",
               option(window=lambda w: w // 2, counting=always(WITHOUT), sides=always("both")),
               hint="`window` is the width of one side.", seen_in="Longformer's convention"),
    _deviation("window-halved", "a window on both sides is halved, as if `window` were its whole width",
               lambda f: lambda q, k, /, *, window, sides, **o: f(q, k,
               window=max(window // 2, 1) if sides == "both" else window, sides=sides, **o),
               hint="`window` is the width of one side, not of both together.", seen_in="ModernBERT's local_attention"),
)  # fmt: skip
