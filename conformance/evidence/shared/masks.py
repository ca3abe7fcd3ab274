"""Positions and mistakes that masks of windows and chunks share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tools import Case, Deviation, Wrap, after, always, argument, before, narrowed, option
from ..tools.hints import ARANGE, BRANCH, COMPARE_INTEGERS, EACH_ROW, INTEGERS, LAST_QUERIES, TRUE_IN_MASK
from .relative import last_of_keys

ONE_QUERY = "Decode steps need a mask too: look for a branch on the number of queries."
NEAR = (0, 1, 2, 3, 4, 5, 6)
UNSORTED = (5, 0, 0, 9, 2, 12, 7)
Q_ROWS = ((4, 5, 9), (260, 261, 262))  # another offset in every row
K_ROWS = ((0, 2, 3, 5, 9), (262, 256, 261, 259, 260))
Q_NEGATIVE, K_NEGATIVE = (-5, -1, 3), (-9, -8, -7, -4, -3, -1, 0, 2)
NONE = np.zeros(0, dtype=np.int64)
BEYOND = 2**24  # from here on float32 does not hold every integer
Q_BEYOND = (BEYOND + 1, BEYOND + 6, 2**30 + 7)
K_BEYOND = (BEYOND - 1, BEYOND, BEYOND + 1, BEYOND + 2, BEYOND + 3, BEYOND + 5, 2**30 + 3, 2**30 + 4, 2**30 + 7)
WITH, WITHOUT = "with_query", "without_query"


def window_case(
    op: str, name: str, q: Any, k: Any, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of a mask."""
    return Case(f"{op}/{name}", params, {"q_positions": q, "k_positions": k}, comment, kind, tier)


MASKS = ("sliding_window", "chunked_window", "lambda_window")


def for_each(ops: tuple[str, ...], wrap: Wrap) -> dict[str, Wrap]:
    """Return one wrap for several operations."""
    return dict.fromkeys(ops, wrap)


def both_positions(change: Callable[[Any], Any]) -> Wrap:
    """Return a wrap that changes the positions of queries and of keys alike."""
    return before(lambda q, k, /, **options: ((change(q), change(k)), options))


def first_row(p: Any) -> Any:
    """Return positions with the first row in every row."""
    return np.broadcast_to(p[:1], p.shape) if p.ndim > 1 and p.shape[0] else p


def counts(p: Any) -> Any:
    """Return 0, 1, 2, ... in place of positions."""
    return np.broadcast_to(np.arange(p.shape[-1]), p.shape) if p.ndim else 0 * p


def held_in(dtype: str) -> Callable[[Any], Any]:
    """Return a function that sends integers through a narrower dtype."""
    return lambda p: narrowed(dtype)(p).astype(np.int64)


def offsets(q: Any, k: Any) -> Any:
    """Return query minus key."""
    return q[..., :, None] - k[..., None, :]


def _future(out: Any, q: Any, k: Any, /, *, sides: str = "causal", **rest: Any) -> Any:
    return out | (offsets(q, k) < 0) if sides == "causal" else out


def _no_window(q: Any, k: Any, /, *, sides: str = "causal", **rest: Any) -> Any:
    return offsets(q, k) >= (0 if sides == "causal" else -np.inf)


def _one_query(seen: bool) -> Wrap:
    """Return a wrap in which a single query sees every key, or none."""
    return after(lambda out, q, k, /, **options: np.full_like(out, seen) if q.shape[-1] == 1 else out)


DEVIATIONS = (
    Deviation("window-with-query", "the window always counts the query's own key",
              for_each(("sliding_window", "lambda_window"), option(counting=always("with_query"), window=lambda w: max(w, 1))),
              hint="It sees one key too few.", seen_in="tokenspeed#578"),
    Deviation("window-without-query", "the window never counts the query's own key",
              for_each(("sliding_window", "lambda_window"), option(counting=always("without_query"))),
              hint="It sees one key too many.", seen_in="transformers#39408, mlx-lm#390, onnxruntime#25927"),
    Deviation("window-causal", "the window is always causal",
              for_each(("sliding_window", "chunked_window"), option(sides=always("causal"))), hint=BRANCH),
    Deviation("window-both-sides", "the window is always on both sides",
              for_each(("sliding_window", "chunked_window"), option(sides=always("both"))), hint=BRANCH),
    Deviation("window-future", "keys after the query are allowed too: only the far end is tested",
              for_each(MASKS, after(_future)), hint="Combine the window with a causal mask."),
    Deviation("window-ignored", "all keys are allowed, or all up to the query", for_each(MASKS, lambda _: _no_window),
              hint="The window's comparison is missing: look at how the window and the causal mask are combined."),
    Deviation("mask-of-forbidden", "True forbids", for_each(MASKS, after(lambda out, *a, **o: ~out)), hint=TRUE_IN_MASK,
              seen_in="torch's MultiheadAttention"),
    Deviation("mask-query-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)",
              for_each(MASKS, argument(0, counts)), hint=ARANGE, seen_in="executorch#21857"),
    Deviation("mask-key-arange", "keys are at 0, 1, 2, ...: cache indices are used as positions",
              for_each(MASKS, argument(1, counts)), hint=ARANGE, seen_in="transformers#37414"),
    Deviation("mask-bottom-right", "queries are the last of the keys, whatever their positions",
              for_each(MASKS, before(last_of_keys)), hint=LAST_QUERIES, seen_in="flash-attention#1778"),
    Deviation("mask-one-query-all", "a single query may see every key", for_each(MASKS, _one_query(seen=True)), hint=ONE_QUERY,
              seen_in="rajveer43/VeloxQuant-MLX#463"),
    Deviation("mask-one-query-none", "a single query may see no key", for_each(MASKS, _one_query(seen=False)), hint=ONE_QUERY),
    Deviation("mask-first-row", "the first row's positions are used for every row", for_each(MASKS, both_positions(first_row)),
              hint=EACH_ROW, seen_in="transformers#40324"),
    Deviation("mask-bfloat16", "positions are held in bfloat16", for_each(MASKS, both_positions(held_in("bfloat16"))),
              hint=INTEGERS),
    Deviation("mask-float32", "positions are held in float32", for_each(MASKS, both_positions(held_in("float32"))),
              hint=COMPARE_INTEGERS),
)  # fmt: skip
