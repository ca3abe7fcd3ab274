"""Decomposed relative positions: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, after, argument, around, before, cases_of, deviations_of, gradient, held, reals
from .tools.hints import BOTH_TERMS, HEIGHT_WIDTH, KEEP_FLOAT32, ROUND_ONCE, ROWS_RISE

OP = "decomposed_bias"

USUAL: dict[str, Any] = {"k_rows": 2, "k_columns": 4}
SIZES: dict[str, Any] = {"I": 3, "J": 5}
KERNEL: tuple[dict[str, Any], ...] = ({"k_rows": 14, "k_columns": 7},)

_case = cases_of(OP)


def _keys(rows: int, columns: int) -> dict[str, Any]:
    return {"k_rows": rows, "k_columns": columns}


def _arrays(name: str, shape: tuple[int, ...], k_grid: tuple[int, int], bits: int = 8) -> dict[str, Any]:
    """Return queries of a shape, and tables for these keys."""
    *_, rows, columns, lanes = shape
    sizes = {"h": 2 * max(rows, k_grid[0]) - 1, "w": 2 * max(columns, k_grid[1]) - 1}
    tables = {f"table_{axis}": reals(OP + name + axis, n, lanes, bits=bits) / 2 for axis, n in sizes.items()}
    return {"q": reals(OP + name, *shape, bits=bits) / 2, **tables}


def _bias(name: str, shape: tuple[int, ...], k_grid: tuple[int, int], bits: int = 8, comment: str = "", **rest: Any) -> Case:
    return _case(name, _keys(*k_grid), _arrays(name, shape, k_grid, bits), comment, **rest)


def _refused(name: str, comment: str, k_grid: tuple[int, int], **changed: Any) -> Case:
    arrays = _arrays(name, (3, 4, 2), (3, 4)) | changed
    return _case(f"refused/{name}", _keys(*k_grid), arrays, comment, kind="reject")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _bias("alike/small", (2, 3, 4), (2, 3), tier="smoke"),
        _bias("alike/images", (5, 2, 3, 2), (2, 3)),
        _bias("alike/mvit-last", (7, 7, 3), (7, 7), comment="the last stage of MViTv2; fewer channels"),
        _bias("alike/53-bits", (2, 4, 3), (2, 4), 53),
        _bias("alike/one-lane", (4, 3, 1), (4, 3)),
        _bias("pooled/mvit", (12, 14, 2), (3, 7), comment="12 by 14 queries and 3 by 7 pooled keys"),
        _bias("pooled/uneven", (8, 5, 2), (6, 3), comment="float32 is a row off for 8 and 6"),
        _bias("pooled/uneven-columns", (5, 8, 2), (3, 6), comment="the same for columns"),
        _bias("more-keys/mixed", (6, 2, 3), (3, 5), comment="fewer rows and more columns than queries"),
        _bias("more-keys/row-129", (1, 129, 2), (1, 3), comment="a row of 129 cells"),
        _bias("more-keys/column-257", (2, 1, 3), (257, 1), comment="a column of 257 cells"),
        _bias("empty/no-heads", (3, 0, 2, 2, 5), (2, 2)),
        _bias("empty/no-head", (2, 0, 3, 2, 4), (2, 1)),
        _bias("forms/length-one", (1, 1, 1, 6), (1, 1), comment="one patch"),
        _refused("table", "a table of another size: resample it first", (3, 4), table_h=reals("t", 7, 2)),
        _refused("exchanged", "the table of the height for the width", (3, 4), table_w=reals("t", 5, 2)),
        _refused("tokens", "a row of tokens has no grid", (3, 4), q=reals("t", 12, 2)),
        _refused("no-keys", "no row of keys", (0, 4)),
        gradient(OP, "alike", _arrays("alike", (2, 3, 2), (2, 3)), {"out": (2, 3, 2, 3)}, **_keys(2, 3)),
        gradient(OP, "pooled", _arrays("less", (3, 2, 2), (1, 2)), {"out": (3, 2, 1, 2)}, **_keys(1, 2)),
        gradient(OP, "bits", _arrays("b", (2, 1, 3), (3, 2), 24), {"out": (2, 1, 3, 2)}, bits=24, **_keys(3, 2)),
    )


def _exchanged(q: Any, h: Any, w: Any, /, **options: Any) -> Any:
    """Exchange the tables, where they have the same size; else read each with the other's rows as far as it has them."""
    return (q, np.resize(w, h.shape), np.resize(h, w.shape)), options


@around
def _keys_exchanged(function: Function, *args: Any, **options: Any) -> Any:
    bias = function(*args, **options)
    return np.swapaxes(bias, -1, -2).reshape(bias.shape)


@around
def _queries_exchanged(function: Function, q: Any, h: Any, w: Any, /, **options: Any) -> Any:
    *lead, rows, columns, lanes = q.shape
    other = np.swapaxes(q.reshape(*lead, columns, rows, lanes), -2, -3)
    return function(other, h, w, **options)


_deviation = deviations_of(OP)

DEVIATIONS = (
    _deviation("decomposed-bias-scaled", "the query is scaled by 1/sqrt(D)", argument(0, lambda q: q / q.shape[-1] ** 0.5),
               hint="Use the query before it is scaled: only q.k has the scale."),
    _deviation("decomposed-bias-exchanged", "the tables of height and width are exchanged", before(_exchanged),
               hint=HEIGHT_WIDTH),
    _deviation("decomposed-bias-no-height", "the table of the height is left out", argument(1, lambda h: 0 * h),
               hint=BOTH_TERMS),
    _deviation("decomposed-bias-no-width", "the table of the width is left out", argument(2, lambda w: 0 * w), hint=BOTH_TERMS),
    _deviation("decomposed-bias-keys-exchanged", "keys are laid out column by column", _keys_exchanged, hint=HEIGHT_WIDTH),
    _deviation("decomposed-bias-queries-exchanged", "queries are laid out column by column", _queries_exchanged,
               hint=HEIGHT_WIDTH),
    _deviation("decomposed-bias-backwards", "both tables are read from the last row",
               before(lambda q, h, w, /, **o: ((q, h[::-1], w[::-1]), o)), hint=ROWS_RISE),
    _deviation("decomposed-bias-heads", "the bias is that of the first image or head",
               after(lambda b, q, *a, **o: np.broadcast_to(b.reshape(-1, *b.shape[-4:])[:1], b.reshape(-1, *b.shape[-4:]).shape)
                     .reshape(b.shape) if b.size else b),
               hint="Every head's queries have their own products with the tables."),
    _deviation("decomposed-bias-bfloat16", "the tables are held in bfloat16", held("bfloat16", 1, 2), hint=KEEP_FLOAT32),
    _deviation("decomposed-bias-queries-bfloat16", "queries are narrowed to bfloat16", held("bfloat16", 0), hint=ROUND_ONCE),
)  # fmt: skip
