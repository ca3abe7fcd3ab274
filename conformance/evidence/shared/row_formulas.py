"""Parts of the formulas that give the rows of a table by offsets, in words and as functions."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..tools.deviation import Function, Wrap, around
from .relative import shaw_rows

Integers = Any  # a NumPy array of integers

# ---- the rows of a window's table --------------------------------------------------------------------------------------------
DOWN: dict[str, Callable[[Integers, int, int], Integers]] = {  # of the offset of rows, the height and the width
    "y + height - 1": lambda y, h, w: y + h - 1, "|y|": lambda y, h, w: np.abs(y), "y": lambda y, h, w: y,
    "height - 1 - y": lambda y, h, w: h - 1 - y, "y + height": lambda y, h, w: y + h,
    "y + width - 1": lambda y, h, w: y + w - 1,
}  # fmt: skip
STRIDES: dict[str, Callable[[int, int], int]] = {
    "2 width - 1": lambda h, w: 2 * w - 1, "2 height - 1": lambda h, w: 2 * h - 1, "width": lambda h, w: w,
    "height": lambda h, w: h, "2 width": lambda h, w: 2 * w, "2 width + 1": lambda h, w: 2 * w + 1,
    "2 width - 2": lambda h, w: 2 * w - 2,
}  # fmt: skip
ACROSS: dict[str, Callable[[Integers, int, int], Integers]] = {  # of the offset of columns, the height and the width
    "x + width - 1": lambda x, h, w: x + w - 1, "|x|": lambda x, h, w: np.abs(x), "x": lambda x, h, w: x,
    "width - 1 - x": lambda x, h, w: w - 1 - x, "x + width": lambda x, h, w: x + w,
    "x + height - 1": lambda x, h, w: x + h - 1,
}  # fmt: skip


def _window_rows(down: Any, stride: Any, across: Any) -> Wrap:
    def deviating(_: Function, table: Any, window: Sequence[int], /) -> Integers:
        (depth, height, width), cells = window, np.indices(window).reshape(3, -1)
        frames, rows, columns = cells[:, :, None] - cells[:, None, :]
        of_frame = down(rows, height, width) * stride(height, width) + across(columns, height, width)
        return ((frames + depth - 1) * (2 * height - 1) * (2 * width - 1) + of_frame) % len(table)

    return around(deviating)


# ---- the rows of Shaw's tables -----------------------------------------------------------------------------------------------
DIFFERENCES: dict[str, Callable[[Integers], Integers]] = {"r": lambda r: r, "-r": lambda r: -r, "|r|": np.abs}
CLIPS: dict[str, Callable[[Integers, int, int], Integers]] = {
    "clip({r}, -left, right)": lambda r, a, b: np.clip(r, -a, b), "clip({r}, -right, left)": lambda r, a, b: np.clip(r, -b, a),
    "({r})": lambda r, a, b: r, "clip({r}, 0, right)": lambda r, a, b: np.clip(r, 0, b),
    "clip({r}, -left, 0)": lambda r, a, b: np.clip(r, -a, 0), "min({r}, right)": lambda r, a, b: np.minimum(r, b),
    "max({r}, -left)": lambda r, a, b: np.maximum(r, -a),
}  # fmt: skip
SHIFTS: dict[str, Callable[[int, int], int]] = {
    " + left": lambda a, b: a, " + right": lambda a, b: b, "": lambda a, b: 0, " + left + 1": lambda a, b: a + 1,
    " + left - 1": lambda a, b: a - 1, " + left + right": lambda a, b: a + b,
}  # fmt: skip


def _clipped(clip: str, difference: str) -> Callable[[Integers, int, int], Integers]:
    return lambda r, left, right: CLIPS[clip](DIFFERENCES[difference](r), left, right)


CLIPPED = {clip.format(r=of): _clipped(clip, of) for clip, of in product(CLIPS, DIFFERENCES)}


def _shaw(op: str) -> Callable[..., Wrap]:
    def made(clip: Any, shift: Any) -> Wrap:
        def rows(apart: Integers, left: int, right: int) -> tuple[Integers, Any]:
            index = (clip(apart, left, right) + shift(left, right)) % (left + right + 1)
            return index, (-left <= apart) & (apart <= right)

        return shaw_rows(rows)[op]

    return made


KNOWN: dict[str, tuple[str, Callable[..., Wrap], Sequence[Mapping[str, Any]]]] = {
    "window_rows": (
        "the row of the table is ({0}) ({1}) + {2}, modulo the number of rows, for cells y rows and x columns apart",
        _window_rows,
        (DOWN, STRIDES, ACROSS),
    ),
    **{
        op: ("the row of the table is {0}{1}, modulo the number of rows, for the difference r", _shaw(op), (CLIPPED, SHIFTS))
        for op in ("shaw_scores", "shaw_values")
    },
}
