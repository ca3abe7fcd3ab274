"""Cases of relative position representations: shaw_scores and shaw_values."""

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import numpy as np

from ..model import Case, Flag, Step
from .numbers import floats

FLAGS = {
    "shaw-order": Flag("key minus query for query minus key, or the reverse", "tensor2tensor's order with SpeechT5's tables"),
    "shaw-windows": Flag("left and right in each other's place", "wav2vec2-BERT's 64 and 8"),
    "shaw-row": Flag("the table's rows shifted by one", "labml #185"),
    "shaw-clip": Flag("far distances not clipped, or clipped one early"),
    "shaw-values-term": Flag("no relative term in the values", "ports that keep a^K alone"),
    "shaw-ids": Flag("counts from 0 in place of the caller's positions", "espnet #2816"),
    "shaw-rows": Flag("row 0's positions used for every row of the batch", "Liger-Kernel #477"),
    "shaw-heads": Flag("heads or batch taken for tokens", "DeBERTa ports, nntrainer #3982"),
    "shaw-downcast": Flag("24-bit queries, weights or tables narrowed on the way"),
    "shaw-one-sided": Flag("a causal table's missing side read", "wenet #1611"),
    "shaw-decode": Flag("a decode row that is not the row of the whole"),
    "shaw-true-size": Flag("a model's own windows not reproduced", "wav2vec2-BERT"),
    "shaw-empty": Flag("no query: a crash or a wrong shape"),
    "shaw-refuse": Flag("an unknown word or a table of the wrong length accepted"),
}

FORWARD, BACKWARD = "key_minus_query", "query_minus_key"
Q_ROWS = ((4, 5, 6), (260, 261, 262))  # another offset in every row
K_ROWS = ((0, 2, 3, 5, 9), (262, 256, 261, 259, 260))
UNSORTED = (5, 0, 0, 9, 2)
FAR = (0, 7, 257, 2049, 65537, 131071, 1048575)  # all clipped but a few


SCORE_AXES = {"q": "qd", "k": "kd", "key_table": "nd"}  # of scores and of values: queries, keys, rows of the table, lanes
VALUE_AXES = {"weights": "qk", "v": "kd", "value_table": "nd"}


def shaw_step(
    axes: Mapping[str, str], seed: str, lead: tuple[int, ...], width: int, positions: tuple[Any, Any], sides: tuple[int, int],
    order: str, bits: int = 8, rows: int | None = None,
) -> Step:  # fmt: skip
    """Return a call: axes by array, leading axes, the head size, positions of queries and of keys, left and right."""
    queries, keys = (np.asarray(p).shape[-1] for p in positions)
    sizes = {"q": queries, "k": keys, "d": width, "n": sum(sides) + 1 if rows is None else rows}
    shapes = {name: (*(() if "n" in letters else lead), *(sizes[a] for a in letters)) for name, letters in axes.items()}
    arrays = {name: floats(*shape, seed=crc32((seed + name).encode()), bits=bits) for name, shape in shapes.items()}
    if "weights" in arrays:
        arrays["weights"] = np.abs(arrays["weights"]) / 16  # positive and small
    inputs = {**arrays, "q_positions": positions[0], "k_positions": positions[1]}
    return Step({"left": sides[0], "right": sides[1], "order": order}, inputs)


def shaw_cases(op: str, axes: Mapping[str, str], term: str = "") -> tuple[Case, ...]:
    """Return what both operations are asked; `term` is a further flag."""

    def case(name: str, flags: str, *call: Any, comment: str = "", kind: str = "value", tier: str = "core", **more: Any) -> Case:
        step = shaw_step(axes, name, *call, **more)
        flagged = tuple(f"shaw-{flag}" for flag in flags.split())
        return Case(f"{op}/{name}", step.params, step.inputs, flagged, comment, kind, tier)

    return (
        case("forward/small", "order row" + term, (), 6, ((1, 2), (0, 1, 2)), (2, 1), FORWARD),
        case("forward/unsorted", "windows clip ids" + term, (3,), 6, ((3, 8, 1, 4), UNSORTED), (4, 2), FORWARD),
        case("forward/24-bits", "downcast windows row", (2, 3), 10, ((0, 4, 7, 2), UNSORTED), (3, 7), FORWARD,
              bits=24),
        case("forward/53-bits", "downcast order", (2,), 5, ((1, 4, 2), (0, 3, 1, 6)), (2, 3), FORWARD, bits=53),
        case("forward/far", "clip ids", (2,), 6, ((2050, 3, 65538), FAR), (5, 3), FORWARD),
        case("forward/rows", "rows ids heads", (2,), 7, (Q_ROWS, K_ROWS), (4, 1), FORWARD,
              comment="(B, Q) and (B, K); no heads"),
        case("forward/rows-and-heads", "rows heads", (2, 4), 6,
              (np.asarray(Q_ROWS)[:, None].tolist(), np.asarray(K_ROWS)[:, None].tolist()), (3, 5), FORWARD,
              comment="positions (B, 1, Q) for (B, H, Q, D)"),
        case("forward/wav2vec2-bert", "true-size windows clip", (), 64, ((70, 0, 100), (0, 5, 7, 64, 77, 99, 109)),
              (64, 8), FORWARD),
        case("forward/no-query", "empty", (3,), 4, (np.zeros(0, dtype=np.int64), (0, 1)), (2, 1), FORWARD),
        case("backward/small", "order row" + term, (2,), 4, ((1, 2, 5), (0, 1, 2, 4, 9)), (3, 2), BACKWARD),
        case("backward/speecht5", "order clip", (), 64, ((0, 90, 30), (0, 5, 29, 64, 88)), (80, 80), BACKWARD,
              comment="half of SpeechT5's 160"),
        case("backward/rows", "rows order downcast", (2,), 10, (Q_ROWS, K_ROWS), (2, 4), BACKWARD, bits=24),
        case("backward/negative", "ids order", (3,), 4, ((-5, -1), (-7, -3, -2, 0, 1)), (4, 1), BACKWARD),
        case("one-sided/causal", "one-sided windows", (3,), 6, ((4, 5), (0, 1, 3, 5, 6)), (3, 0), FORWARD),
        case("one-sided/future", "one-sided windows", (2,), 6, ((4, 1, 5), (0, 1, 3, 5, 6)), (0, 3), BACKWARD),
        case("one-sided/one-query", "decode ids", (3,), 6, ((4,), (0, 1, 2, 3, 4)), (2, 1), FORWARD),
        case("one-sided/one-query-backward", "decode ids", (2,), 6, ((257,), (256, 257, 255, 250)), (3, 1),
              BACKWARD),
        Case(f"{op}/sequence/decode", flags=("shaw-decode", "shaw-ids"),
             comment="a row of the whole, then at another offset", kind="sequence",
             steps=( shaw_step(axes, "prefill", (3,), 6, ((0, 1, 2, 3), (0, 1, 2, 3)), (2, 1), FORWARD),
             shaw_step(axes, "decode", (3,), 6, ((4,), (0, 1, 2, 3, 4)), (2, 1), FORWARD),
             shaw_step(axes, "elsewhere", (3,), 6, ((5, 6, 7, 8), (9, 5, 7, 6)), (2, 1), FORWARD))),
        case("refused/order", "refuse", (), 4, ((1, 2), (0, 1, 2)), (2, 1), "signed", comment="no such order",
              kind="reject"),
        case("refused/rows", "refuse", (), 4, ((1, 2), (0, 1, 2)), (2, 1), FORWARD,
              comment="left + right + 1 rows: 4, not 3", kind="reject", rows=3),
    )  # fmt: skip


CASES: tuple[Case, ...] = (
    *shaw_cases("shaw_scores", SCORE_AXES), *shaw_cases("shaw_values", VALUE_AXES, " values-term"),
)
