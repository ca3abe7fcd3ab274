"""Buckets of image RPE: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Step, after, argument, around, before, cases_of, deviations_of, form_case, narrowed, option
from .tools.hints import ALL_AXES, ARANGE, AXIS_ORDER, BRANCH, INTEGERS, LOG_BUCKETS, SIGN

OP = "irpe_buckets"
RATIO: dict[str, float] = {"alpha": 1.9, "beta": 3.8, "gamma": 15.2}
USUAL: dict[str, Any] = {"method": "product", **RATIO}
KERNEL: tuple[dict[str, Any], ...] = (USUAL, {**USUAL, "method": "euclidean"})
KERNEL_SIZES: dict[str, Any] = {"Q": 129, "K": 257, "R": (2,)}

_cases = cases_of(OP)


def _grid(height: int, width: int, y: int = 0, x: int = 0) -> Any:
    """Return the cells of a grid with its corner at (y, x)."""
    return np.stack([axis.reshape(-1) for axis in np.mgrid[y : y + height, x : x + width]])


LINE = np.arange(-63, 64)
ROW, COLUMN = np.stack([0 * LINE, LINE]), np.stack([LINE, 0 * LINE])  # all offsets of 64 cells along one axis
ORIGIN = np.zeros((2, 1), dtype=np.int64)
FAN = np.stack([np.arange(0, 64, 3), (np.arange(0, 64, 3) * 5) % 64])
FAR = np.asarray([[0, 15, -16, 300, 2049, 65537], [0, 16, 15, -257, 131071, -4]])


def _case(
    name: str, q: Any, k: Any = None, method: str = "product", ratio: float | None = None, comment: str = "",
    *, options: dict[str, Any] | None = None, cells: Any = None, **rest: Any,
) -> Case:  # fmt: skip
    """Return a case; keys are the queries unless given, and a ratio stands for the authors' three coefficients."""
    ratios = RATIO if ratio is None else {"alpha": ratio, "beta": 2 * ratio, "gamma": 8 * ratio}
    inputs = {"q_positions": q, "k_positions": q if k is None else k, **({} if cells is None else {"cells": cells})}
    return _cases(name, {"method": method, **ratios, **(options or {})}, inputs, comment, **rest)


def _form(name: str, q: Any, k: Any, cells: Any = None, form: str = "") -> Case:
    inputs = {"q_positions": q, "k_positions": k, **({} if cells is None else {"cells": cells})}
    return form_case(OP, name, inputs, USUAL, form=form)


def _with_class(cells: Any) -> Any:
    """Return cells with a class token at (0, 0) before them."""
    return np.concatenate([np.zeros((2, 1), dtype=np.int64), cells], axis=1)


def _both(queries: int, keys: int, count: int = 1) -> Any:
    """Return which pairs are of cells, with class tokens before both queries and keys."""
    return (np.arange(queries) >= count)[:, None] & (np.arange(keys) >= count)


BATCH = np.stack([_grid(2, 3), _grid(3, 2, 7, 1)], axis=1)
TIES = {"alpha": 2.0, "beta": 3.0, "gamma": 8.0}  # 4 is at 2.5
ONE = {"alpha": 0.5, "beta": 1.5, "gamma": 3.0}
NO_BUCKET = {"alpha": 0.25, "beta": 0.75, "gamma": 9.0}
MORE_TIES = {"alpha": 1.0, "beta": 4.0, "gamma": 16.0}  # so it is here


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("product/small", _grid(1, 3), _grid(2, 4), tier="smoke"),
        _case("product/class-key", BATCH, _with_class(_grid(1, 3))[:, None], cells=(np.arange(4) >= 1)[None, :]),
        _case("product/half", _grid(1, 4, 257, 2049), _grid(2, 2, 256, 2050)),
        _case("distance/euclidean-deit", ORIGIN, FAN, "euclidean", 20.0),
        _case("distance/euclidean-image", _grid(12, 12)[:, [0]], _grid(12, 12), "euclidean", 3.25),
        _case("distance/quant-far", FAR, FAR[:, 1:], "quant", 33.0),
        _case("cross/line", ORIGIN, ROW, "cross_cols", 4.75),
        _case("cross/class-token", _with_class(_grid(2, 2, 1)), None, "cross_cols", cells=_both(5, 5)),
        _case("cross/ties-even", ORIGIN, ROW[:, 50:80], "cross_cols", options=TIES, comment="4 is at 2.5"),
        _case("cross/ties-odd", ORIGIN, COLUMN[:, 50:80], "cross_rows", options=MORE_TIES),
        _case("cross/ties-one", ORIGIN, ROW[:, 55:70], "cross_cols", options=ONE),
        _case("cross/ties-none", ORIGIN, ROW[:, 60:68], "cross_cols", options=NO_BUCKET, comment="b is 0: one bucket"),
        _form("batch-one", BATCH[:, :1], BATCH[:, :1, :4]),
        _form("length-one", ORIGIN + 4, ORIGIN + 3),
        Case(f"{OP}/sequence/images", kind="sequence", comment="three images",
             steps=tuple(Step(USUAL, {"q_positions": c, "k_positions": c}) for c in (_grid(2, 3), _grid(3, 4), _grid(2, 2)))),
        _case("refused/fractions", _grid(1, 2) + 0.5, comment="cells are integers", kind="reject"),
        _case("refused/one-axis", np.arange(3)[None, :], comment="a cell has a row and a column", kind="reject"),
        _case("refused/mask", _grid(1, 2), cells=np.ones((2, 2)), comment="a mask is boolean", kind="reject"),
        _case("refused/order", _grid(1, 2), options={"alpha": 4.0}, comment="alpha above beta", kind="reject"),
    )  # fmt: skip


def _g(offsets: Any, alpha: float, beta: float, gamma: float, rounding: Any = np.rint, last: float | None = None) -> Any:
    """Return buckets of offsets by the formula, with another rounding or another last bucket."""
    size = np.abs(np.asarray(offsets, dtype=np.float64))
    log = alpha + np.log(np.maximum(size, alpha) / alpha) / np.log(gamma / alpha) * (beta - alpha)
    far = np.minimum(rounding(np.round(log, 9)), np.floor(beta) if last is None else last)
    return (np.sign(offsets) * np.where(size <= alpha, size, far)).astype(np.int64)


def _other(rounding: Any = np.rint, last: float | None = None, root: Any = np.rint, squared: bool | None = None) -> Any:
    """Return a wrap that computes buckets by the formula, with something changed."""

    def deviating(q: Any, k: Any, /, *, method: str, alpha: float, beta: float, gamma: float, cells: Any = None) -> Any:
        y, x = np.asarray(q)[..., :, None].astype(np.float64) - np.asarray(k)[..., None, :]
        b, of = int(np.floor(beta)), (alpha, beta, gamma, rounding, last)
        square = squared if squared is not None and method in ("euclidean", "quant") else method == "quant"
        if method in ("euclidean", "quant"):
            buckets = _g(y * y + x * x if square else root(np.sqrt(y * y + x * x)), *of) + b
        elif method == "product":
            buckets = (_g(y, *of) + b) * (2 * b + 1) + _g(x, *of) + b
        else:
            buckets = _g(y if method == "cross_rows" else x, *of) + b
        last_one = (2 * b + 1) ** (2 if method == "product" else 1)
        return buckets if cells is None else np.where(np.asarray(cells), buckets, last_one)

    return lambda _: deviating


def _product_columns(q: Any, k: Any, /, *, method: str, **options: Any) -> Any:
    turn = -1 if method == "product" else 1
    return (np.asarray(q)[::turn], np.asarray(k)[::turn]), {"method": method, **options}


@around
def _stride(function: Function, q: Any, k: Any, /, *, beta: float, method: str, **options: Any) -> Any:
    """Rows are 2 beta + 1 buckets apart, with beta not rounded down first."""
    buckets = function(q, k, beta=beta, method=method, **options)
    b, wide = int(np.floor(beta)), int(2 * beta + 1)
    return buckets // (2 * b + 1) * wide + buckets % (2 * b + 1) if method == "product" else buckets


def _first_bucket(found: Any, *args: Any, cells: Any = None, **options: Any) -> Any:
    return found if cells is None else np.where(np.asarray(cells), found, 0)


def _ignored(*args: Any, cells: Any = None, **options: Any) -> Any:
    return args, {**options, "cells": None if cells is None else np.ones_like(cells)}


@around
def _as_queries(function: Function, *args: Any, cells: Any = None, **options: Any) -> Any:
    """Only queries that are class tokens have the bucket of their own, not keys."""
    of_cells = None if cells is None else np.broadcast_to(np.any(cells, axis=-1, keepdims=True), np.shape(cells))
    return function(*args, cells=of_cells, **options)


def _counted(q: Any) -> Any:
    """Return cells counted from the smallest row and column."""
    return q - np.min(q, axis=-1, keepdims=True, initial=2**40) if q.shape[-1] else q


def _floored(*args: Any, alpha: float, beta: float, **options: Any) -> Any:
    """Round beta down where it stays above alpha."""
    down = float(np.floor(beta))
    return args, {**options, "alpha": alpha, "beta": down if down > alpha else beta}


_deviation = deviations_of(OP)
_signed = deviations_of("signed_buckets")
ROUNDED = "Round alpha + ln(x / alpha) / ln(gamma / alpha) * (beta - alpha) to the nearest integer, halves to the even one."
CLASS = "Class tokens share one more bucket, after all others, as queries and as keys."
BETA = "beta is rounded down as the last bucket, but not in the logarithm."
SQUARE = "euclidean takes the rounded distance, quant the squared one."

DEVIATIONS = (
    _deviation("irpe-sign", "offsets are key less query", before(lambda q, k, /, **o: ((-q, -k), o)), hint=SIGN),
    _deviation("irpe-columns-first", "rows and columns are exchanged",
               before(lambda q, k, /, **options: ((np.asarray(q)[::-1], np.asarray(k)[::-1]), options)), hint=AXIS_ORDER),
    _deviation("irpe-product-columns", "the product's bucket counts columns first", before(_product_columns),
               hint="The product's bucket is the row's number times the count of numbers, plus the column's."),
    _deviation("irpe-crossed", "the cross method's rows are columns, and the reverse",
               option(method=lambda method: {"cross_rows": "cross_cols", "cross_cols": "cross_rows"}.get(method, method)),
               hint=BRANCH),
    _deviation("irpe-rows-twice", "the row is read twice",
               before(lambda q, k, /, **o: ((np.asarray(q)[[0, 0]], np.asarray(k)[[0, 0]]), o)), hint=ALL_AXES),
    _deviation("irpe-stride", "rows of buckets are 2 beta + 1 apart, with beta not rounded down first", _stride,
               hint="Round beta down, then double it and add 1."),
    _deviation("irpe-from-zero", "the smallest bucket is -b",
               lambda function: lambda q, k, /, *, beta, **options: function(q, k, beta=beta, **options) - int(np.floor(beta)),
               hint="Add b, so that buckets count from 0."),
    _deviation("irpe-floor", "the logarithm is rounded down", _other(np.floor), hint=ROUNDED),
    _deviation("irpe-ceil", "the logarithm is rounded up", _other(np.ceil), hint=ROUNDED),
    _deviation("irpe-halves-up", "halves are rounded up", _other(lambda x: np.floor(x + 0.5)), hint=ROUNDED),
    _deviation("irpe-unlimited", "far offsets have buckets beyond the last", _other(last=np.inf),
               hint="The largest bucket on one side is beta, rounded down."),
    _deviation("irpe-beta-rounded", "the largest bucket on one side is beta, rounded to the nearest",
               option(beta=lambda b: float(np.rint(b)) if np.rint(b) > 1 else b), hint=BETA),
    _deviation("irpe-beta-floored", "beta is rounded down in the logarithm too", before(_floored), hint=BETA),
    _signed("irpe-no-logarithm", "offsets beyond alpha keep buckets of their own",
            lambda f: lambda x, first, /: np.clip(x, -len(first), len(first)) + len(first), hint=LOG_BUCKETS),
    _signed("irpe-absolute", "offsets of both signs share buckets", argument(0, np.abs),
            hint="product and cross keep the sign of each offset."),
    _deviation("irpe-squared", "the distance is always squared", _other(squared=True), hint=SQUARE),
    _deviation("irpe-root", "the distance is never squared", _other(squared=False), hint=SQUARE),
    _deviation("irpe-root-down", "the distance is rounded down", _other(root=np.floor), hint=SQUARE),
    _deviation("irpe-class-first", "pairs with a class token are in bucket 0", after(_first_bucket), hint=CLASS),
    _deviation("irpe-class-ignored", "class tokens are cells of their coordinates", before(_ignored), hint=CLASS),
    _deviation("irpe-class-queries", "class tokens have the last bucket only as queries", _as_queries, hint=CLASS),
    _deviation("irpe-counted", "queries are counted from the corner of their grid", argument(0, _counted), hint=ARANGE),
    _deviation("irpe-bfloat16", "cells are held in bfloat16", before(lambda q, k, /, **o: (
               tuple(narrowed("bfloat16")(n).astype(np.int64) for n in (q, k)), o)), hint=INTEGERS),
)  # fmt: skip
