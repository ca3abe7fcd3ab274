"""Forgetting gates by rows: cases and known mistakes."""

from typing import Any

import numpy as np

from .every.drawn_cases import drawn_cases_of
from .tools import Case, Function, Real, after, argument, around, deviations_of, narrowed, option
from .tools.hints import CUMULATIVE_SUMS, EACH_HEAD, KEEP_FLOAT32, LAST_TOKENS, SIGN

OP = __name__.rpartition(".")[2]
USUAL: dict[str, Any] = {"counted": "query"}
KERNEL: Any = ({"counted": "query"}, {"counted": "key"})
KERNEL_SIZES: dict[str, Any] = {"H": 3, "Q": 17, "K": 257, "R": (2,)}

_case, _deviation = drawn_cases_of(OP), deviations_of(OP)
_sums = deviations_of("sums_from")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("small", H=2, Q=2, K=4, tier="smoke"),
        _case("key", {"counted": "key"}, H=2, Q=3, K=5),
        _case("24-bits", bits=24),
        _case("24-bits-key", {"counted": "key"}, bits=24, Q=5),
        _case("12-heads", H=12, Q=2, K=40, comment="as many heads as a released model"),
        _case("1000-keys", {"counted": "key"}, H=1, Q=2, K=1000, bits=24),
        _case("forms/strided", form="non-contiguous", R=(2,), rows=True),
        _case("forms/one-query", Q=1),
        _case("forms/one-key", Q=1, K=1),
        _case("forms/one-key-rows", {"counted": "key"}, Q=1, K=1, R=(2,), rows=True),
        _case("small", kind="vjp", H=2, Q=2, K=4),
        _case("key", {"counted": "key"}, kind="vjp", H=2, Q=3, K=3, bits=24),
        _case("strided", kind="vjp", form="non-contiguous", H=1, Q=2, K=3, R=(2,)),
        _case("refused/more-queries", {}, {"log_gates": -np.ones((2, 5, 4))}, "a query without a token", kind="reject"),
        _case("refused/word", {"counted": "both"}, comment="no such word", kind="reject"),
    )


@around
def _query_first(function: Function, log_gates: Real, /, **options: Any) -> Real:
    """Take queries for the first tokens."""
    n = log_gates.shape[-2]
    first = function(log_gates[..., :n], **options)
    return np.concatenate([first, np.zeros((*first.shape[:-1], log_gates.shape[-1] - n))], axis=-1)


def _both(out: Real, log_gates: Real, /, *, counted: str) -> Real:
    """Count both ends."""
    queries, keys = log_gates.shape[-2:]
    gates = log_gates if counted == "query" else np.take_along_axis(
        log_gates, np.broadcast_to(np.arange(keys - queries, keys)[:, None], (*log_gates.shape[:-1], 1)), axis=-1
    )  # fmt: skip
    queries, keys = log_gates.shape[-2:]
    return np.where(np.tri(queries, keys, keys - queries, dtype=bool), out + gates, 0.0)


@around
def _unmasked(function: Function, log_gates: Real, /, *, counted: str) -> Real:
    """Read gates of tokens after the query: sum to the end of the row."""
    sums = np.flip(np.cumsum(np.flip(log_gates, -1), -1), -1)
    return sums - log_gates if counted == "query" else sums


SWAPPED = {"query": "key", "key": "query"}
ENDS = "Compare which of the two ends counts: the query's own gate, or the key's."
CAUSAL = "Set the gates of tokens after the query to 0 before the sum."

DEVIATIONS = (
    _deviation("row-gates-other-end", "the gate of the other end counts", option(counted=lambda word: SWAPPED.get(word, word)),
               hint=ENDS, one_of="counted"),
    _deviation("row-gates-both-ends", "the gates of both ends count", after(_both), hint=ENDS, one_of="counted"),
    _deviation("row-gates-sign", "the bias has the wrong sign", after(lambda out, *args, **options: -out), hint=SIGN),
    _deviation("row-gates-future", "gates of tokens after the query count", _unmasked, hint=CAUSAL),
    _deviation("row-gates-query-arange", "queries are the first tokens, not the last", _query_first, hint=LAST_TOKENS),
    _deviation("row-gates-of-last-query", "every query has the gates of the last one, as in forgetting attention",
               argument(0, lambda g: np.broadcast_to(g[..., -1:, :], g.shape)), hint="Each query has gates of its own."),
    _deviation("row-gates-transposed", "the gates of query and key are exchanged",
               argument(0, lambda g: np.swapaxes(g, -1, -2) if g.shape[-1] == g.shape[-2] else g),
               hint="Rows are queries: the sum is over the last axis."),
    _deviation("row-gates-first-head", "every head has the gates of the first",
               argument(0, lambda g: np.broadcast_to(g[..., :1, :, :], g.shape)), hint=EACH_HEAD),
    _deviation("row-gates-bfloat16", "gates are held in bfloat16", argument(0, narrowed("bfloat16")), hint=KEEP_FLOAT32),
    _sums("row-sums-bfloat16", "cumulative sums are held in bfloat16", after(lambda out, *a: narrowed("bfloat16")(out)),
          hint=CUMULATIVE_SUMS),
    _sums("row-gates-not-summed", "the gates are not summed", lambda f: lambda g, /: g, hint="Sum along the keys."),
    _sums("row-gates-from-first", "gates are summed from the first token on", lambda f: lambda g, /: np.cumsum(g, -1),
          hint="Flip, sum, and flip again: the sum begins at the query."),
)  # fmt: skip
