"""Learned position embeddings: cases and known mistakes."""

from typing import Any
from zlib import crc32

import numpy as np

from .tools import Case, Function, argument, around, around_with, deviations_of, floats, gradient, places, reals
from .tools.hints import ARANGE, FROM_ZERO, IGNORED, NEGATIVE_INDICES

USUAL: dict[str, Any] = {"offset": 2}
SIZES: dict[str, Any] = {"N": 13}
KERNEL: tuple[dict[str, Any], ...] = ({"offset": 2},)


def _case(
    name: str, positions: Any, table: tuple[int, ...], comment: str = "", *, bits: int = 8,
    kind: str = "value",
    tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of learned with a table of this shape."""
    inputs = {"positions": positions, "table": floats(*table, seed=crc32(name.encode()), bits=bits)}
    return Case(f"learned/{name}", params, inputs, comment, kind, tier)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", (2, 0, 4), (5, 6), tier="smoke"),
        _case("plain/scalar", 3, (5, 12), "a position without axes"),
        _case("plain/gpt-2", (0, 1, 255, 256, 257, 1023), (1024, 3), "GPT-2's number of rows; narrower"),
        _case("offset/opt", (0, 1, 257, 2047), (2050, 2), "2048 positions behind 2 rows", offset=2),
        _case("offset/roberta", (0, 1, 7, 255, 511), (514, 5), "padding_idx + 1", offset=2),
        _case("clip/offset", (-3, -2, 4, 0, 7, 2**20), (7, 10), "the offset comes first: -2 is row 0", offset=2, clip=True),
        _case("clip/rows", ((3, 9, -5, 6), (0, -1, 2, 2), (9, 8, -70, 4099)), (7, 4), bits=24, offset=1, clip=True),
        _case("clip/inside", (3, 0, 4, 1), (6, 3), offset=1, clip=True),
        _case("clip/prophetnet", (0, 1, 257, 511, 512, 700), (512, 6), "ProphetNet's number of rows; narrower", clip=True),
        _case("clip/one-row", (0, 3, -3), (1, 7), "a table of one row", clip=True),
        _case("refused/clip-nothing", (0, 1), (0, 6), "there is no row to clip to", kind="reject", clip=True),
        _case("refused/offset", (0, 1), (5, 6), "an offset counts rows", kind="reject", offset=-1),
        _case("refused/fraction", (0.5, 1.0), (5, 6), "positions are rows of the table", kind="reject"),
        _case("refused/three-axes", (0, 1), (5, 2, 3), "a table has two axes", kind="reject"),
        *places("learned", "positions", USUAL, table=reals("learned", 11, 6)),
        gradient("learned", "repeated", {"positions": (5, 0, 5, 2, 5), "table": reals("learned", 7, 3)}, {"out": (5, 3)}),
        gradient("learned", "rows",
                 {"positions": ((0, 3, 1), (3, 3, 4)), "table": reals("learned rows", 8, 2, bits=24)}, {"out": (2, 3, 2)},
                 offset=2, bits=24),
        gradient("learned", "clip", {"positions": (-1, 4, 0, 9, 300), "table": reals("learned clip", 5, 3)},
                 {"out": (5, 3)}, offset=1, clip=True),
    )  # fmt: skip


CLIP_LAST = "Positions outside read the first or last row: add the offset, then clip."


@around_with
def _outside(change: Function, function: Function, p: Any, table: Any, /, *, offset: int = 0, clip: bool = False) -> Any:
    """`change` chooses the rows of the table, if they are to be limited."""
    return function(change(p + offset, len(table)) if clip else p + offset, table)


@around
def _zeros_outside(function: Function, p: Any, table: Any, /, *, offset: int = 0, clip: bool = False) -> Any:
    result, rows = function(p, table, offset=offset, clip=clip), np.asarray(p + offset)
    return np.where(((rows >= 0) & (rows < len(table)))[..., None], result, 0.0)


_deviation = deviations_of("learned")

DEVIATIONS = (
    _deviation("offset-ignored", "the offset into the table is ignored",
               lambda f: lambda p, t, /, *, offset=0, **o: f(p, t, **o), hint=IGNORED,
               seen_in="transformers#1761, sentence-transformers#3879"),
    _deviation("offset-plus-1", "each row is the one after the right one",
               lambda f: lambda p, t, /, **o: f(p, np.concatenate([t[1:], t[-1:]]), **o), hint=FROM_ZERO,
               seen_in="lightseq#144"),
    _deviation("clip-wraps", "rows outside the table wrap around to its other end", _outside(lambda rows, count: rows % count),
               hint=NEGATIVE_INDICES),
    _deviation("clip-zeros", "positions outside the table get zeros", _zeros_outside, hint=CLIP_LAST, seen_in="tinygrad#5873"),
    _deviation("clip-before-offset", "positions are clipped before the offset is added",
               lambda f: lambda p, t, /, *, offset=0, clip=False: f(np.maximum(p, 0) if clip else p, t, offset=offset,
               clip=clip), hint=CLIP_LAST),
    _deviation("rows-arange", "rows 0, 1, 2, ... are always read, without looking at positions",
               argument(0, lambda p: np.broadcast_to(np.arange(p.shape[-1]), p.shape) if p.ndim else 0 * p), hint=ARANGE,
               seen_in="keras-hub#1544"),
)  # fmt: skip
