"""Chunked attention: cases and known mistakes."""

from functools import partial
from typing import Any

import numpy as np

from .shared.masks import (
    K_BEYOND,
    K_NEGATIVE,
    K_ROWS,
    NEAR,
    NONE,
    Q_BEYOND,
    Q_NEGATIVE,
    Q_ROWS,
    both_positions,
    offsets,
    window_case,
)
from .tools import Case, deviations_of, option, pairs

USUAL: dict[str, Any] = {"chunk_size": 6, "sides": "causal"}
KERNEL: tuple[dict[str, Any], ...] = ({"chunk_size": 48, "sides": "causal"},)


_case = partial(window_case, "chunked_window")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("causal/small", (5, 3, 8), (0, 3, 4, 5, 7, 8), chunk_size=4, sides="causal", tier="smoke"),
        _case("causal/rows-and-heads", np.asarray(Q_ROWS)[:, None], np.asarray(K_ROWS)[:, None],
              "(B, 1, Q) and (B, 1, K)", chunk_size=4, sides="causal"),
        _case("causal/negative", Q_NEGATIVE, K_NEGATIVE, chunk_size=4, sides="causal"),
        _case("causal/llama-4", (8191, 8192, 131071, 16385),
              (0, 1, 8191, 8192, 16383, 16384, 122879, 122880, 131071), chunk_size=8192, sides="causal"),
        _case("causal/beyond-float32", Q_BEYOND, K_BEYOND, chunk_size=2, sides="causal"),
        _case("both/beyond-float32", Q_BEYOND[:2], K_BEYOND[:-1], chunk_size=3, sides="both"),
        _case("causal/no-query", NONE, (0, 1), chunk_size=4, sides="causal"),
        _case("both/one", (2, 5, 3), NEAR, "the query alone", chunk_size=1, sides="both"),
        _case("refused/chunk", (1, 2), (0, 1, 2), "a chunk has a token at least", chunk_size=0, sides="causal", kind="reject"),
        _case("refused/fractions", (1.5, 2.0), (0.0, 1.0, 2.0), "positions are integers", chunk_size=2, sides="causal",
              kind="reject"),
        *pairs("chunked_window", {"chunk_size": 5, "sides": "causal"}),
    )  # fmt: skip


CHUNK_START = "A chunk begins at a multiple of its size: compare positions // size."


def _as_window(q: Any, k: Any, /, *, chunk_size: int, sides: str) -> Any:
    apart = offsets(q, k)
    return (apart < chunk_size) & (apart >= 0 if sides == "causal" else apart > -chunk_size)


def _truncated(q: Any, k: Any, /, *, chunk_size: int, sides: str) -> Any:
    same = offsets(*(np.trunc(np.asarray(p) / chunk_size) for p in (q, k))) == 0
    return same & (offsets(q, k) >= 0) if sides == "causal" else same


def _and_the_one_before(q: Any, k: Any, /, *, chunk_size: int, sides: str) -> Any:
    behind = offsets(*(np.asarray(p) // chunk_size for p in (q, k)))
    allowed = (behind == 0) | (behind == 1)
    return allowed & (offsets(q, k) >= 0) if sides == "causal" else allowed


_deviation = deviations_of("chunked_window")

DEVIATIONS = (
    _deviation("chunk-sliding", "a sliding window of as many tokens is used in place of chunks", lambda _: _as_window,
               hint=CHUNK_START),
    _deviation("chunk-shifted", "chunks have the power of two at or below their size: they are found with a shift",
               option(chunk_size=lambda c: 1 << (int(c).bit_length() - 1)),
               hint="Divide by the chunk: a shift needs a power of two."),
    _deviation("chunk-from-1", "chunks begin one position early", both_positions(lambda p: p + 1), hint=CHUNK_START,
               seen_in="transformers#40324"),
    _deviation("chunk-and-before", "keys of the chunk before are allowed too", lambda _: _and_the_one_before, hint=CHUNK_START),
    _deviation("chunk-truncated", "quotients of negative positions are rounded towards 0", lambda _: _truncated,
               hint="Floor quotients of negative positions: C and rounding_mode='trunc' round towards 0."),
)  # fmt: skip
