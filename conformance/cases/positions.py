"""Cases of position ids: from masks and tokens, of packed rows, of compressed windows, of shards."""

from typing import Any

import numpy as np

from ..model import Case, Flag, Step
from .making import cases_of

FLAGS = {
    "ids-padding": Flag("padding counted, as by a model that is called without positions", "transformers #22707"),
    "ids-fill": Flag("padding given another position than asked for"),
    "ids-from": Flag("counts from 1 in place of 0, or without the padding's own row"),
    "ids-rows": Flag("row 0's positions used for every row of the batch"),
    "ids-holes": Flag("padding between tokens counted"),
    "ids-refuse": Flag("a float mask, or a window of no tokens, accepted"),
    "documents-begin": Flag("sequences begun at position 0, or at a smaller position, alone"),
    "windows-complete": Flag("a window seen before its last token, or not at it"),
    "ids-kept": Flag("positions of the call before, kept because they were long enough, or in one shape alone"),
    "shard-order": Flag("contiguous shards, chunks not mirrored, or a reversed second chunk", "ring-flash-attention"),
    "shard-refuse": Flag("a length that does not divide, or a rank that is not there, accepted"),
}

LEFT = ((0, 0, 1, 1, 1), (0, 1, 1, 1, 1), (1, 1, 1, 1, 1))
RIGHT = ((1, 1, 1, 0, 0), (1, 1, 1, 1, 1), (1, 0, 0, 0, 0))
BOTH = (0, 0, 0, 1, 1, 1, 1, 0, 0)
HOLES = ((1, 0, 1, 1, 0, 1, 0), (0, 1, 0, 0, 1, 1, 1))
LONG = np.arange(257) >= 61
TOKENS = ((0, 42, 7, 9, 1, 1), (1, 1, 0, 5, 33, 2), (0, 1, 5, 1, 6, 2))
PACKED = ((0, 1, 2, 0, 1, 0, 1, 2, 3), (0, 0, 0, 1, 2, 3, 0, 1, 2))
FORWARD = (5, 6, 7, 9, 10, 300, 301, 302)
NONE = np.zeros(0, dtype=np.int64)


def _mask(values: Any) -> dict[str, Any]:
    return {"mask": np.asarray(values) > 0}


_ids = cases_of("positions_from_mask", "ids-")
MASKS = (
    _ids("left/zero", "padding from rows fill", {"padding": 0}, _mask(LEFT), "transformers' generation", tier="smoke"),
    _ids("left/one", "padding fill from rows", {"padding": 1}, _mask(LEFT), "both Qwen-Omni"),
    _ids("left/minus-one", "padding fill from", {"padding": -1}, _mask(LEFT[::-1]), "OPT"),
    _ids("right/zero", "fill from rows", {"padding": 0}, _mask(RIGHT)),
    _ids("right/one", "fill from rows", {"padding": 1}, _mask(RIGHT)),
    _ids("both/zero", "padding fill from", {"padding": 0}, _mask(BOTH)),
    _ids("both/seven", "padding fill from", {"padding": 7}, _mask(BOTH)),
    _ids("holes/zero", "holes padding rows", {"padding": 0}, _mask(HOLES), "the sum goes over them"),
    _ids("holes/one", "holes padding rows", {"padding": 1}, _mask(HOLES)),
    _ids("long/zero", "padding from", {"padding": 0}, _mask(LONG)),
    _ids("long/rows", "padding rows", {"padding": 1}, _mask(np.stack([LONG, LONG[::-1]]))),
    _ids("all/padding", "fill", {"padding": 3}, _mask(np.zeros((2, 4)))),
    _ids("all/tokens", "from", {"padding": 3}, _mask(np.ones((2, 4)))),
    _ids("refused/float", "refuse", {"padding": 0}, {"mask": np.ones((2, 3))}, "a mask of reals", kind="reject"),
)

_rows = cases_of("positions_from_tokens", "ids-")
ROWS = (
    _rows("roberta/small", "padding from rows", {"padding_idx": 1}, {"tokens": TOKENS}, tier="smoke"),
    _rows("roberta/long", "padding from", {"padding_idx": 1}, {"tokens": np.where(LONG, np.arange(257) + 2, 1)}),
    _rows("roberta/far", "padding from", {"padding_idx": 1}, {"tokens": (250001, 1, 131072, 65537, 1)}, "ids of XLM-R"),
    _rows("zero/small", "padding from rows", {"padding_idx": 0}, {"tokens": TOKENS}, "padding 0 has row 0"),
    _rows("zero/left", "padding from", {"padding_idx": 0}, {"tokens": (0, 0, 0, 8, 9, 4, 5)}),
    _rows("other/small", "padding from rows", {"padding_idx": 5}, {"tokens": TOKENS}),
    _rows("other/absent", "from", {"padding_idx": 77}, {"tokens": TOKENS}, "no padding at all"),
    _rows("refused/float", "refuse", {"padding_idx": 1}, {"tokens": np.ones((2, 3)) / 2}, "tokens of reals", kind="reject"),
)

_documents = cases_of("packed_documents", "")
DOCUMENTS = (
    _documents("packed/small", "documents-begin ids-from ids-rows", {}, {"positions": PACKED}, tier="smoke"),
    _documents("packed/one", "documents-begin ids-from", {}, {"positions": PACKED[0]}),
    _documents("packed/forward", "documents-begin ids-from", {}, {"positions": FORWARD}, "a jump forward begins one too"),
    _documents("packed/down", "documents-begin", {}, {"positions": (7, 8, 3, 4, 5, 2, 3)}, "no sequence begins at 0"),
    _documents("packed/padded", "documents-begin", {}, {"positions": PACKED[1]}, "padding at one position breaks up"),
    _documents("packed/rows", "ids-rows documents-begin", {}, {"positions": (FORWARD, tuple(range(8)))}),
    _documents("packed/long", "documents-begin ids-from", {}, {"positions": np.arange(257) % 64}),
    _documents("packed/far", "documents-begin", {}, {"positions": (131070, 131071, 131072, 131072, 1048575, 1048576)}),
    _documents("refused/float", "ids-refuse", {}, {"positions": np.ones((2, 3)) / 2}, "positions of reals", kind="reject"),
)

_windows = cases_of("visible_windows", "")
WINDOWS = (
    _windows("four/small", "windows-complete", {"rate": 4}, {"q_positions": (0, 2, 3, 4, 7, 8, 11)}, tier="smoke"),
    _windows("four/rows", "windows-complete ids-rows", {"rate": 4}, {"q_positions": ((3, 4, 5), (250, 251, 252))}),
    _windows("deepseek-v4/far", "windows-complete", {"rate": 128}, {"q_positions": (126, 127, 128, 131071, 131072, 1048575)}),
    _windows("deepseek-v4/prompt", "windows-complete", {"rate": 128}, {"q_positions": np.arange(257)}),
    _windows("one/small", "windows-complete", {"rate": 1}, {"q_positions": (0, 1, 5)}, "every key alone"),
    _windows("three/decode", "windows-complete", {"rate": 3}, {"q_positions": (8,)}),
    _windows("refused/rate", "ids-refuse", {"rate": 0}, {"q_positions": (8,)}, "a window of no tokens", kind="reject"),
)


def _forms(op: str, name: str, values: tuple[tuple[int, ...], ...], params: dict[str, Any]) -> tuple[Case, ...]:
    """Return what every form of one array of integers or of a mask is asked."""
    case = cases_of(op)
    whole = np.asarray(values)
    kind = np.bool_ if name == "mask" else np.int64

    def asked(array: Any) -> dict[str, Any]:
        return {name: np.asarray(array).astype(kind)}

    row = np.stack([whole[0]] * 3)
    return (
        case("forms/strided", "non-contiguous", params, asked(np.stack([whole, whole[::-1]]))),
        case("forms/strided-row", "non-contiguous", params, asked(whole[1])),
        case("forms/expanded", "broadcast-view", params, asked(row), "one row stands for three"),
        case("forms/expanded-twice", "broadcast-view", params, asked(np.stack([row, row]))),
        case("forms/batch-one", "batch-one", params, asked(whole[:1])),
        case("forms/length-one", "length-one batch-one", params, asked(whole[:1, 1:2])),
        case("forms/one-token", "length-one", params, asked(whole[:, 2:3])),
        case("forms/length-zero", "length-zero", params, asked(whole[:, :0])),
        case("forms/no-tokens", "length-zero", params, asked(whole[0, :0])),
        case("forms/no-rows", "length-zero", params, asked(np.zeros((0, 4)))),
        case("forms/no-batch", "length-zero", params, asked(np.zeros((2, 0, 4)))),
        case("forms/no-batch-again", "length-zero", params, asked(np.zeros((3, 0, 5)))),
        _sequence(op, (params, asked(whole)), (params, asked(whole[1, 1:4])), (params, asked(whole[:1]))),
    )


def _sequence(op: str, *calls: tuple[dict[str, Any], dict[str, Any]]) -> Case:
    """Return several calls of an operation on one instance."""
    steps = tuple(Step(params, arrays) for params, arrays in calls)
    return Case(f"{op}/sequence/shapes", flags=("ids-kept",), kind="sequence", steps=steps)


def _ranks(op: str, length: int) -> Case:
    """Return the shards of every rank, asked one after another."""
    return _sequence(op, *(({"length": length, "rank": rank, "ranks": 3}, {}) for rank in (2, 0, 1)))


_zigzag = cases_of("zigzag_shard", "shard-")
_striped = cases_of("striped_shard", "shard-")
SHARDS = (
    _zigzag("two/first", "order", {"length": 8, "rank": 0, "ranks": 2}, tier="smoke"),
    _zigzag("two/second", "order", {"length": 12, "rank": 1, "ranks": 2}),
    _zigzag("four/first", "order", {"length": 40, "rank": 0, "ranks": 4}),
    _zigzag("four/third", "order", {"length": 40, "rank": 2, "ranks": 4}),
    _zigzag("four/last", "order", {"length": 24, "rank": 3, "ranks": 4}),
    _zigzag("eight/long", "order", {"length": 1040, "rank": 5, "ranks": 8}),
    _zigzag("one/whole", "order", {"length": 10, "rank": 0, "ranks": 1}, comment="one rank has all"),
    _zigzag("one/none", "order", {"length": 0, "rank": 0, "ranks": 1}, comment="no tokens"),
    _zigzag("two/none", "order", {"length": 0, "rank": 1, "ranks": 2}, comment="no tokens"),
    _zigzag(
        "refused/odd", "refuse", {"length": 10, "rank": 0, "ranks": 4}, comment="not two chunks for each rank", kind="reject"
    ),
    _zigzag("refused/rank", "refuse", {"length": 16, "rank": 4, "ranks": 4}, comment="no such rank", kind="reject"),
    _striped("two/first", "order", {"length": 8, "rank": 0, "ranks": 2}, tier="smoke"),
    _striped("two/second", "order", {"length": 11, "rank": 1, "ranks": 2}, comment="one token fewer than the first"),
    _striped("four/third", "order", {"length": 41, "rank": 2, "ranks": 4}),
    _striped("four/last", "order", {"length": 24, "rank": 3, "ranks": 4}),
    _striped("eight/long", "order", {"length": 1043, "rank": 5, "ranks": 8}),
    _striped("eight/few", "order", {"length": 5, "rank": 4, "ranks": 8}, comment="one token"),
    _striped("eight/none", "order", {"length": 5, "rank": 6, "ranks": 8}, comment="no token is left for it"),
    _striped("one/none", "order", {"length": 0, "rank": 0, "ranks": 1}, comment="no tokens"),
    _striped("refused/rank", "refuse", {"length": 16, "rank": 4, "ranks": 4}, comment="no such rank", kind="reject"),
)

CASES = (
    *MASKS,
    *_forms("positions_from_mask", "mask", ((0, 0, 1, 1, 1, 1), (0, 1, 1, 1, 0, 0)), {"padding": 0}),
    *ROWS,
    *_forms("positions_from_tokens", "tokens", ((0, 42, 7, 9, 1, 1), (1, 1, 0, 5, 33, 2)), {"padding_idx": 1}),
    *DOCUMENTS,
    *_forms("packed_documents", "positions", ((0, 1, 2, 0, 1, 0), (5, 6, 0, 1, 2, 9)), {}),
    *WINDOWS,
    *_forms("visible_windows", "q_positions", ((0, 3, 4, 7, 9, 11), (1, 2, 6, 8, 10, 15)), {"rate": 4}),
    *SHARDS,
    _ranks("zigzag_shard", 18),
    _ranks("striped_shard", 17),
)
