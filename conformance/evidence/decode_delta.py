"""Offset of the tokens after a multimodal prompt: cases and known mistakes."""

from typing import Any

import numpy as np

from posref.positions import multimodal

from .shared.position_ids import in_sequence
from .tools import Case, Function, after, argument, around, cases_of, deviations_of

KERNEL: tuple[dict[str, Any], ...] = ({},)
KERNEL_SIZES: dict[str, Any] = {"A": 3}

SMALL = multimodal([("text", 1), ("image", 2, 2), ("text", 1)], after="max")
IMAGE = multimodal([("text", 2), ("image", 2, 3), ("text", 4)], after="max")  # 12 tokens, all of them
VIDEO = multimodal([("text", 1), ("video", 3, 1, 2, 5), ("text", 5)], after="max")
TALL = multimodal([("text", 3), ("image", 4, 2), ("text", 1)], after="max")  # its heights are its largest positions
LAST = multimodal([("text", 4), ("image", 2, 4)], after="max")  # it ends with its image
ALL = np.ones(12)
LEFT, RIGHT = np.arange(12) >= 3, np.arange(12) < 9

_case = cases_of("decode_delta")


def _given(positions: Any, mask: Any) -> dict[str, Any]:
    return {"positions": np.asarray(positions), "mask": np.asarray(mask) > 0}


def _padded(positions: Any, left: int, right: int, fill: int) -> dict[str, Any]:
    """Return a prompt with padding on both sides, whose positions are all `fill`."""
    widths = [(0, 0), (left, right)]
    return _given(np.pad(positions, widths, constant_values=fill), np.pad(np.ones(positions.shape[-1]), (left, right)))


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    batch = np.stack([IMAGE, VIDEO, TALL], axis=1)
    far = IMAGE + 131070
    return (
        _case("image/small", {}, _given(SMALL, np.ones(6)), tier="smoke"),
        _case("video/last", {}, _given(VIDEO[:, :7], ALL[:7]), "the time is the largest position"),
        _case("text/four-axes", {}, _given(np.stack([np.arange(7)] * 4), np.ones(7)), "as in Qwen3.5"),
        _case("padding/one", {}, _padded(TALL, 2, 2, 1), "Qwen2-VL's first code gives padding position 1"),
        _case("padding/large", {}, _padded(LAST, 0, 5, 99), "padding counts on after the tokens"),
        _case("none/all", {}, _given(IMAGE[:, :5], np.zeros(5))),
        _case("far/image", {}, _given(far, ALL), "a prompt after a long text"),
        _case("far/video", {}, _padded(VIDEO * 20011, 0, 2, 0)),
        _case("refused/float", {}, {"positions": IMAGE, "mask": np.ones(12)}, "a mask of reals", kind="reject"),
        _case("refused/shape", {}, _given(batch, np.ones((2, 12))), "two rows for three", kind="reject"),
        *_forms(),
    )


def _forms() -> tuple[Case, ...]:
    """Return the cases that every form of the two arrays has."""
    pair, kept = np.stack([IMAGE, VIDEO], axis=1), np.stack([LEFT, RIGHT])
    same, once = np.stack([IMAGE] * 3, axis=1), np.stack([LEFT] * 3)
    return (
        _case("forms/expanded-twice", {}, _given(np.stack([same] * 2, axis=1), np.stack([once] * 2)), form="broadcast-view"),
        _case("forms/length-one", {}, _given(IMAGE[:, None, 4:5], ALL[None, :1])),
        in_sequence("decode_delta", ({}, _given(pair, kept)), ({}, _given(VIDEO[:, :7], ALL[:7])), ({}, _given(TALL, ALL))),
    )


@around
def _of_batch(function: Function, positions: Any, mask: Any, /) -> Any:
    """The largest position of the whole batch stands for every row."""
    out = np.asarray(function(positions, mask))
    counts = np.asarray(mask).sum(axis=-1)
    return (out + counts).max(initial=0) - counts if out.ndim else out


@around
def _first_row(function: Function, positions: Any, mask: Any, /) -> Any:
    """The offset of the first row stands for every row."""
    out = np.asarray(function(positions, mask))
    return np.full_like(out, out.flat[0]) if out.size else out


LARGEST = "The maximum is over all axes: time, height and width. The next token stands one after it."
ROWS = "Each row has its own offset."
_deviation = deviations_of("decode_delta")

DEVIATIONS = (
    _deviation("delta-not-one-more", "the next token has the prompt's largest position again",
               after(lambda out, *args: out - 1), hint=LARGEST),
    _deviation("delta-negated", "the sign is wrong", after(lambda out, *args: -out),
               hint="Add it to the number of cached tokens. It is below 0 after an image."),
    _deviation("delta-first-axis", "the largest time counts, not that of all axes", argument(0, lambda p: p[:1]), hint=LARGEST),
    _deviation("delta-last-axis", "the largest width counts, not that of all axes", argument(0, lambda p: p[-1:]),
               hint=LARGEST),
    _deviation("delta-padding-counted", "padding counts as tokens",
               after(lambda out, p, mask: out + np.asarray(mask).sum(axis=-1) - np.shape(mask)[-1]),
               hint="Subtract the number of tokens, without padding."),
    _deviation("delta-padding-seen", "the positions of padding count too",
               after(lambda out, p, mask: np.max(p, axis=(0, -1), initial=-1) + 1 - np.asarray(mask).sum(axis=-1)),
               hint="Take the maximum where the mask is 1."),
    _deviation("delta-zero", "it is always 0: the next tokens are numbered by the cached tokens",
               after(lambda out, *args: np.zeros_like(out)), hint="Look where the offset of the prompt is kept.",
               seen_in="Blaizzy/mlx-vlm#1527"),
    _deviation("delta-of-batch", "the largest position of the whole batch counts", _of_batch, hint=ROWS),
    _deviation("delta-first-row", "all rows have the offset of the first", _first_row, hint=ROWS,
               seen_in="Blaizzy/mlx-vlm#1422"),
)  # fmt: skip
