"""Distances of dual chunk attention: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .shared.distances import CHUNKED, Method, Score, changed_map, maps_of
from .shared.rotary import ROTARY
from .tools import Case, Deviation, Wrap, pairs

OWN = {"chunk_size": 262144, "window": 8192}
METHOD = Method(
    {"chunk_size": 9, "window": 3}, {"chunk_size": 7, "window": 0}, {"chunk_size": 12, "window": 8}, OWN,
    ({"chunk_size": 6, "window": 6}, {"chunk_size": 6, "window": -1}), CHUNKED, 1e7,
    more=(
        Score("true-borders", ((253953, 761856), (507902, 507903, 253952, 7)), OWN, (), 16, {**ROTARY, "base": 1e7}),
    ),
    large_scores=True,
)  # fmt: skip

USUAL: dict[str, Any] = METHOD.small
KERNEL: tuple[dict[str, Any], ...] = ({"chunk_size": 96, "window": 32},)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*maps_of("dual_chunk_distances", METHOD), *pairs("dual_chunk_distances", METHOD.small))


SUCCESSIVE_QUERY = "Compare min(m mod s + s, chunk_size), the query's place for the chunk before."
INTER_QUERY = "Compare the query's place for chunks further back: min(2s - 1, chunk_size)."


def _chunked(
    *, size: Callable[[int, int], int] = int.__sub__, limit: Callable[[int], int] = int,
    successive: Callable[..., Any] | None = None, inter: Callable[..., Any] | None = None, late: int = 0,
) -> dict[str, Wrap]:  # fmt: skip
    """Return dual chunk attention with chunks of another size, another limit, or other queries of one kind."""

    def formula(m: Any, n: Any, *, chunk_size: int, window: int) -> Any:
        s, most = size(chunk_size, window), limit(chunk_size)
        in_chunk, behind = m % s, (m - late) // s - (n - late) // s
        next_to = np.minimum(in_chunk + s, most) if successive is None else successive(in_chunk, s, most)
        later = 0 * in_chunk + min(2 * s - 1, most) if inter is None else inter(in_chunk, s, most)
        return np.where(behind <= 0, in_chunk, np.where(behind == 1, next_to, later)) - n % s

    return changed_map("dual_chunk_distances", formula)


DEVIATIONS = (
    Deviation("dual-chunk-paper-limit", "the largest position is chunk_size - 1", _chunked(limit=lambda c: c - 1),
              hint="The authors' code has positions to chunk_size, the paper to chunk_size - 1.",
              seen_in="arXiv:2402.17463's c - 1, with its code's sizes"),
    Deviation("dual-chunk-local-ignored", "chunks have chunk_size tokens", _chunked(size=lambda c, local: c),
              hint="They have chunk_size - window."),
    Deviation("dual-chunk-no-successive", "the chunk before counts like any earlier one",
              _chunked(successive=lambda own, s, most: 0 * own + min(2 * s - 1, most)), hint=SUCCESSIVE_QUERY),
    Deviation("dual-chunk-unlimited", "queries for the chunk before are not limited",
              _chunked(successive=lambda own, s, most: own + s), hint=SUCCESSIVE_QUERY, seen_in="vLLM's critical queries"),
    Deviation("dual-chunk-inter-unlimited", "queries for earlier chunks go on from chunk_size",
              _chunked(inter=lambda own, s, most: own + most), hint=INTER_QUERY, seen_in="vLLM's critical queries"),
    Deviation("dual-chunk-inter-successive", "queries for earlier chunks have the places of those for the chunk before",
              _chunked(inter=lambda own, s, most: np.minimum(own + s, most)), hint=INTER_QUERY),
    Deviation("dual-chunk-inter-chunk-size", "queries for earlier chunks are at chunk_size, also where chunks are shorter",
              _chunked(inter=lambda own, s, most: 0 * own + most),
              hint="They have the place of the last query for the chunk before."),
    Deviation("dual-chunk-intra", "all keys are placed like those of the query's own chunk",
              _chunked(successive=lambda own, s, most: own, inter=lambda own, s, most: own),
              hint="Keys of other chunks need the other two queries."),
    Deviation("dual-chunk-late-border", "chunks end one token late, but positions in them do not", _chunked(late=1),
              hint="A chunk has s = chunk_size - window tokens: m // s and m % s go together."),
)  # fmt: skip
