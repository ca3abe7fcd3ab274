"""A prompt of text, images and videos in words, and the positions of its tokens along time, height and width."""

from __future__ import annotations

import re
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from posref.core.grids import AFTER, After
from posref.positions import multimodal

from ..errors import TargetError

SEGMENT = re.compile(
    r"(?:(?P<text>text) +(?P<tokens>\d+)|(?P<image>image) +(?P<size>\d+x\d+)"
    r"|(?P<video>video) +(?P<frames>\d+x\d+x\d+) +every +(?P<interval>\d+(?:\.\d+)?))"
)
FORM = "text N, image HxW and video TxHxW every S, in commas"
MOST = 1 << 24  # tokens


def positions_of_prompt(text: str, after: str | None) -> npt.NDArray[np.int64]:
    """
    Return the three positions of every token of a prompt such as ``text 5, image 4x6, video 2x4x6 every 1.5, text 3``.

    Sizes are in cells after merging, and S is positions per frame. `after` is as `posref.positions.multimodal` has it. It must
    be given for a prompt where its words give different positions.

    Raises
    ------
    TargetError
        If the prompt is of another form, or does not say enough.
    """
    segments = [_segment(part.strip()) for part in text.split(",")]
    tokens = sum(_tokens(segment) for segment in segments)
    if tokens > MOST:
        msg = f"golden: --prompt must have at most {MOST} tokens; got {tokens}."
        raise TargetError(msg)
    if after is not None:
        return np.asarray(multimodal(segments, after=cast("After", after)))
    first, *others = (np.asarray(multimodal(segments, after=word)) for word in AFTER)
    if not all(np.array_equal(first, other) for other in others):
        msg = f"golden: --after must be {' or '.join(AFTER)} here: a video lasts longer than it is wide or high."
        raise TargetError(msg)
    return first


def _segment(text: str) -> tuple[Any, ...]:
    found = SEGMENT.fullmatch(text)
    if found is None:
        msg = f"golden: --prompt must be {FORM}; got {text!r}."
        raise TargetError(msg)
    if found["text"]:
        return ("text", int(found["tokens"]))
    if found["image"]:
        return ("image", *map(int, found["size"].split("x")))
    return ("video", *map(int, found["frames"].split("x")), float(found["interval"]))


def _tokens(segment: tuple[Any, ...]) -> int:
    kind, *sizes = segment
    return int(np.prod([float(n) for n in (sizes[:3] if kind == "video" else sizes)]))
