"""Deviations of position ids: what is counted, from where, and in which order."""

from typing import Any

import numpy as np

from .compose import Function, after, deviations_of


def _first_row(function: Function) -> Function:
    """Return the result of the first row for every row."""

    def deviating(x: Any, /, **options: Any) -> Any:
        out = function(x, **options)
        return np.broadcast_to(out[..., :1, :], out.shape).copy() if out.ndim > 1 and out.size else out

    return deviating


def _begins(change: Any) -> Any:
    """Return documents that begin where `change` of a position and the one before is true."""

    def wrap(function: Function) -> Function:
        def deviating(p: Any, /) -> Any:
            begins = np.zeros(np.shape(p), dtype=np.int64)
            begins[..., 1:] = change(p[..., 1:], p[..., :-1])
            return np.cumsum(begins, axis=-1)

        return deviating

    return wrap


def _counted(mask: Any) -> Any:
    return np.cumsum(np.asarray(mask).astype(np.int64), axis=-1)


def _shard(change: Any) -> Any:
    """Return a shard made otherwise from length, rank and number of ranks."""
    return lambda function: lambda length, /, *, rank, ranks: np.asarray(change(length, rank, ranks), dtype=np.int64)


def _chunks(length: int, ranks: int, *which: int) -> list[int]:
    size = length // (2 * ranks)
    return [chunk * size + i for chunk in which for i in range(size)]


_mask = deviations_of("positions_from_mask")
_tokens = deviations_of("positions_from_tokens")
_documents = deviations_of("packed_documents")
_windows = deviations_of("visible_windows")
_zigzag = deviations_of("zigzag_shard")
_striped = deviations_of("striped_shard")

DEVIATIONS = (
    _mask(
        "ids-padding-counted", "padding is counted: positions are indices in the row",
        after(lambda out, mask, **options: np.broadcast_to(np.arange(out.shape[-1]), out.shape).copy()),
        hint="Count the tokens of the mask; a plain arange is right without padding alone.",
    ),
    _mask("ids-from-one", "positions begin at 1", after(lambda out, mask, **options: out + (np.asarray(mask) != 0)),
          hint="The sum includes the token itself: subtract 1."),
    _mask("ids-padding-not-filled", "padding has the position of the token before it",
          after(lambda out, mask, **options: _counted(mask) - 1), hint="Padding has the position that was asked for."),
    _mask("ids-padding-one", "padding always has position 1",
          after(lambda out, mask, **options: np.where(np.asarray(mask) != 0, out, 1)), hint="Look for a fixed fill of 1."),
    _mask("ids-first-row", "all rows have the positions of the first", _first_row, hint="Each row has its own padding."),
    _tokens("rows-from-padding", "the first token has the padding's own row",
            after(lambda out, tokens, *, padding_idx: np.where(np.asarray(tokens) != padding_idx, out - 1, out)),
            hint="Tokens begin one row after the padding's."),
    _tokens("rows-from-one", "the padding's index is not added",
            after(lambda out, tokens, *, padding_idx: out - padding_idx), hint="Tokens begin at padding_idx + 1, not at 1."),
    _tokens("rows-padding-counts", "padding takes the row of the token before it",
            after(lambda out, tokens, *, padding_idx: _counted(np.asarray(tokens) != padding_idx) + padding_idx),
            hint="Multiply the sum by the mask before padding_idx is added."),
    _tokens("rows-all-counted", "padding is counted: rows are indices in the sequence",
            after(lambda out, tokens, *, padding_idx: np.broadcast_to(np.arange(out.shape[-1]), out.shape) + padding_idx + 1),
            hint="Sum over tokens that are not padding."),
    _documents("documents-from-one", "sequences are counted from 1", after(lambda out, p: out + 1), hint="The first is 0."),
    _documents("documents-at-zero", "a sequence begins only at position 0", _begins(lambda p, before: p == 0),
               hint="A chunk may begin at any position; a jump begins a sequence."),
    _documents("documents-at-decrease", "a sequence begins where positions decrease", _begins(lambda p, before: p < before),
               hint="Equal positions and jumps forward begin a sequence too."),
    _windows("windows-begun", "the query sees its own window before that is complete",
             after(lambda out, p, *, rate: p // rate + 1), hint="A window is compressed once its last token is there."),
    _windows("windows-late", "the last token of a window does not see it", after(lambda out, p, *, rate: p // rate),
             hint="Query m has seen m + 1 tokens."),
    _zigzag("shard-contiguous", "shards are contiguous",
            _shard(lambda length, rank, ranks: _chunks(length, ranks, 2 * rank, 2 * rank + 1)),
            hint="Rank r has chunk r and the r-th from the end."),
    _zigzag("shard-not-mirrored", "the second chunk is counted from the middle, not from the end",
            _shard(lambda length, rank, ranks: _chunks(length, ranks, rank, ranks + rank)),
            hint="The second chunk is counted from the end: 2c - 1 - r."),
    _zigzag("shard-tail-first", "the second chunk comes before the first",
            _shard(lambda length, rank, ranks: _chunks(length, ranks, 2 * ranks - 1 - rank, rank)),
            hint="The chunk from the front comes first."),
    _zigzag("shard-tail-backwards", "the second chunk is reversed",
            _shard(lambda length, rank, ranks: [*_chunks(length, ranks, rank),
                                                *_chunks(length, ranks, 2 * ranks - 1 - rank)[::-1]]),
            hint="Only the order of chunks is mirrored, not the tokens in a chunk."),
    _striped("stripes-contiguous", "shards are contiguous",
             _shard(lambda length, rank, ranks: np.array_split(np.arange(length), ranks)[rank]),
             hint="Tokens are dealt to the ranks one by one."),
    _striped("stripes-from-one", "ranks are counted from 1: positions are one too large",
             _shard(lambda length, rank, ranks: range(rank + 1, length + 1, ranks)), hint="Rank 0 begins at token 0."),
)  # fmt: skip
