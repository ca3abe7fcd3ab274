"""The mask of shifted windows: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.masks import NONE
from .tools import Case, Step, after, always, argument, before, cases_of, deviations_of, option
from .tools.hints import ARANGE, EACH_ROW, TRUE_IN_MASK

OP = "shifted_window_mask"

USUAL: dict[str, Any] = {"size": 12, "window": 4, "shift": 2}
OTHER_VALUES = {"shift": 1, "size": 16, "window": 6}
KERNEL: tuple[dict[str, Any], ...] = ({"size": 4116, "window": 7, "shift": 3},)

_case = cases_of(OP)


def _mask(name: str, size: int, window: int, shift: int, q: Any = None, k: Any = None, comment: str = "", **rest: Any) -> Case:
    """Return a case, by default of all cells of the axis."""
    inputs = {"q_positions": range(size) if q is None else q, "k_positions": range(size) if k is None else k}
    return _case(name, {"size": size, "window": window, "shift": shift}, inputs, comment, **rest)


def _sequence(name: str, sizes: tuple[int, int, int], *calls: tuple[Any, Any]) -> Case:
    """Return calls after each other: nothing is kept from one to the next."""
    params = dict(zip(("size", "window", "shift"), sizes, strict=True))
    steps = tuple(Step(params, {"q_positions": q, "k_positions": k}) for q, k in calls)
    return Case(f"{OP}/sequence/{name}", kind="sequence", steps=steps)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _mask("shifted/small", 6, 3, 1, (5, 2, 3), (3, 5, 4, 1, 0), tier="smoke"),
        _mask("shifted/swin-56", 56, 7, 3, (0, 48, 49, 52, 53, 55)),
        _mask("shifted/most", 10, 5, 4),
        _mask("shifted/keys-257", 258, 6, 2, (0, 252, 254, 257, 129), range(257)),
        _mask("shifted/more-cells", 16, 4, 1, (15, 12, 3), (14, 15, 12, 2, 3)),
        _mask("still/three-windows", 6, 2, 0),
        _mask("places/one-query", 8, 4, 1, (7,)),
        _mask("places/no-query", 8, 4, 2, NONE, (0, 1)),
        _mask("forms/batch-one", 12, 4, 2, ((8, 2, 11),), ((0, 10, 9, 7),)),
        _mask("forms/length-one", 12, 4, 2, (9,), (10,), "one query and one key"),
        _sequence("more-keys", (12, 4, 1), ((8, 11), (8, 9, 10)), ((8, 11), (8, 9, 10, 11, 3)), ((3, 9), (11, 0, 2))),
        _sequence("other-windows", (12, 4, 2), ((8, 11), (8, 9, 10)), ((3, 0, 10), (11, 0, 2))),
        _mask("refused/shift", 8, 4, 4, comment="a shift as large as the window", kind="reject"),
        _mask("refused/window", 8, 0, 0, comment="a window without cells", kind="reject"),
        _mask("refused/fractions", 8, 4, 2, (0.5, 1.0), (0, 1), "fractions of cells", kind="reject"),
    )


def _first_row(p: Any) -> Any:
    return np.broadcast_to(p[:1], p.shape) if p.ndim > 1 and p.shape[0] else p


def _counts(p: Any) -> Any:
    return np.broadcast_to(np.arange(p.shape[-1]), p.shape) if p.ndim else 0 * p


_deviation = deviations_of(OP)
_of_region = deviations_of("swin_region")
LAST_WINDOW = "Three regions: before the last window, and in it the cells that stayed and those that came back in."

DEVIATIONS = (
    _deviation("shifted-window-none", "the cells that came back in are not hidden", option(shift=always(0)), hint=LAST_WINDOW),
    _deviation("shifted-window-all", "all cells of a window but the query's own side of the shift are hidden",
               after(lambda m, q, k, /, *, size, window, shift:
                     m & ((q % window >= window - shift)[..., :, None] == (k % window >= window - shift)[..., None, :])),
               hint="Only the last window is divided.") ,
    _deviation("shifted-window-half", "the shift is always half of the window",
               before(lambda q, k, /, *, size, window, shift:
                      ((q, k), {"size": size, "window": window, "shift": window // 2 if shift else 0})),
               hint="The shift is an option of its own."),
    _deviation("shifted-window-whole", "cells of other windows are not hidden",
               lambda f: lambda q, k, /, *, size, window, shift: (
                   f(q, k, size=size, window=max(size, window), shift=min(shift, max(size, window) - 1))),
               hint="Attention is within windows: part cells into windows first."),
    _of_region("shifted-window-from-start", "the first cells are divided, not the last",
               lambda _: lambda cells, size, window, shift, /: (cells < window) * 1 + (cells < shift),
               hint="A shift to the left brings the first cells to the end."),
    _of_region("shifted-window-one-late", "the cells that came back in begin one cell late",
               lambda f: lambda cells, size, window, shift, /: f(cells, size, window, shift - 1), hint=LAST_WINDOW),
    _of_region("shifted-window-one-early", "the cells that came back in begin one cell early",
               lambda f: lambda cells, size, window, shift, /: f(cells, size, window, shift + 1), hint=LAST_WINDOW),
    _deviation("shifted-window-forbidden", "True forbids", after(lambda m, *a, **o: ~m), hint=TRUE_IN_MASK,
               seen_in="torch's MultiheadAttention"),
    _deviation("shifted-window-query-arange", "queries are at 0, 1, 2, ...", argument(0, _counts), hint=ARANGE),
    _deviation("shifted-window-key-arange", "keys are at 0, 1, 2, ...", argument(1, _counts), hint=ARANGE),
    _deviation("shifted-window-first-row", "the first row's positions are used for every row",
               before(lambda q, k, /, **o: ((_first_row(q), _first_row(k)), o)), hint=EACH_ROW),
)  # fmt: skip
