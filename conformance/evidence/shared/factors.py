"""Positions and mistakes that factors on queries share."""

from typing import Any

import numpy as np

from ..tools import Case, Deviation, Make, Options, after, always, argument, held, option
from ..tools.hints import ARANGE, BRANCH, EACH_ROW, INTEGERS, KEEP_FLOAT32
from .masks import counts, first_row, for_each, held_in


def factor_case(
    op: str, name: str, positions: Any, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of a factor on queries."""
    return Case(f"{op}/{name}", params, {"positions": positions}, comment, kind, tier)


def negative_positions(make: Make, usual: Options) -> Case:
    """Return a call with negative positions, to which no offset is added."""
    return make.one("negative", params={**usual, "offset": 0}, places=lambda count: np.arange(count) * 5 - 12)


EDGES = (0, 1, 2, 7, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 65537, 131071, 1048575)
TEXTS = ((3, 700, 1200, 2100), (4100, 2050, 0, 90000))  # another text in every row

FACTORS = ("logn_scale", "attention_temperature")
ALL_FACTORS = (*FACTORS, "learned_logn_scale")

DEVIATIONS = (
    Deviation("factor-offset-0", "the position is always taken for the number of keys",
              for_each(FACTORS, option(offset=always(0))), hint=BRANCH, seen_in="fastllm's Qwen"),
    Deviation("factor-offset-1", "one is always added to the position", for_each(FACTORS, option(offset=always(1))),
              hint=BRANCH),
    Deviation("factor-arange", "queries are at 0, 1, 2, ..., not at their positions",
              for_each(ALL_FACTORS, argument(0, counts)), hint=ARANGE),
    Deviation("factor-first-row", "the first row's positions are used for every row",
              for_each(ALL_FACTORS, argument(0, first_row)), hint=EACH_ROW),
    Deviation("factor-of-last", "every query has the factor of the last",
              for_each(ALL_FACTORS, argument(0, lambda p: np.broadcast_to(p[..., -1:], p.shape) if p.ndim else p)),
              hint="Use each query's own number of keys, not the whole text's."),
    Deviation("factor-inverse", "queries are divided by the factor",
              for_each(FACTORS, after(lambda f, *a, **o: 1 / np.where(f == 0, 1.0, f))),
              hint="Queries are multiplied by the factor."),
    Deviation("factor-bfloat16", "the factor is held in bfloat16", for_each(ALL_FACTORS, held("bfloat16")), hint=KEEP_FLOAT32,
              seen_in="transformers' Mistral Large 4"),
    Deviation("factor-positions-bfloat16", "positions are held in bfloat16",
              for_each(ALL_FACTORS, argument(0, held_in("bfloat16"))), hint=INTEGERS),
)  # fmt: skip
