"""Flags, positions, and helpers that rotations over several position axes share."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...model import Case, Flag
from ..tools.deviation import Real
from ..tools.forms import form
from ..tools.numbers import floats, reals, seed_of
from .rotary import PLACES

FLAGS = {
    "axis-order": Flag("time, height and width, or height and width, exchanged"),
    "axis-map": Flag("sections chunked where they are interleaved, or the reverse"),
    "axis-tail": Flag("the pairs past the shorter sections given to another axis than time"),
    "axis-ladder": Flag("one list of frequencies where every axis has its own, or the reverse", "vllm-omni #1784"),
    "axis-turns": Flag("coordinates from -1 to 1 not multiplied by 2 pi"),
    "axis-rows": Flag("row 0's positions used for every row of the batch", "Liger-Kernel #477"),
    "refuse-sections": Flag("sections that do not tile the pairs accepted"),
    "axial-origin": Flag("class or register tokens rotated", "naver-ai/rope-vit"),
    "mixed-sum": Flag("one axis alone, or axes subtracted, where a pair rotates with the sum of all"),
    "mixed-order": Flag("coordinates of one axis multiplied by the frequencies of another"),
    "mixed-heads": Flag("the first head's frequencies used for every head"),
    "mixed-bits": Flag("learned frequencies narrowed to half precision"),
    "axis-text": Flag("text, with the same position on every axis, not rotated as by RoPE"),
    "two-axes": Flag("height and width exchanged, or a third axis read past the end"),
}

ARRANGED = {
    "chunked": [1, 3, 2],
    "interleaved": [3, 2, 1],
    "ernie": [2, 2, 2],
    "round_robin": [1, 3, 2],
}
# A prompt: two words, an image of 2 x 3 cells, a word; and one with a video
PROMPT = ((0, 1, 2, 2, 2, 2, 2, 2, 5), (0, 1, 2, 2, 2, 3, 3, 3, 5), (0, 1, 2, 3, 4, 2, 3, 4, 5))
VIDEO = ((7, 8, 8, 58, 58, 108), (7, 8, 9, 8, 9, 109), (7, 8, 8, 257, 9, 109))
PATCHES = ((0, 0, 1, 1, 2), (0, 1, 0, 3, 1))
BETWEEN = ((0.5, -1.25, 3.75), (-0.5, 2.5, 7.25))  # of cells scaled about the centre
FRAMES = ((0, 1, 7), (3, -5, 2), (6, 9, -4))
FAR = ((0, 257, 2049, 65537), (131071, 63, 4097, 7))


def learned(name: str, *shape: int, bits: int = 8) -> Any:
    """Return frequencies of either sign, below 1."""
    return floats(*shape, seed=seed_of(name + "frequencies"), bits=bits) / 4


SECTIONS: dict[str, Any] = {"sections": [1, 2, 2], "arrangement": "chunked"}


class Placed(NamedTuple):
    """A form of positions of several axes, and the shape of x."""

    name: str
    flags: str
    x: tuple[int, ...]
    positions: Any
    comment: str = ""


def placed_forms() -> tuple[Placed, ...]:
    """Return the forms of positions of three axes."""
    rows = np.asarray([[row] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)
    return (
        Placed("strided", "non-contiguous", (2, 3, 4, 10), rows, "heads before tokens"),
        Placed("strided-rows", "non-contiguous", (4, 12), np.asarray(PLACES)),
        Placed("expanded", "broadcast-view", (-2, 4, 10), np.asarray([[row, row] for row in PLACES]), "one row stands for two"),
        Placed("batch-one", "batch-one", (1, 3, 4, 10), rows[:, :1]),
        Placed("length-one", "length-one batch-one", (1, 3, 1, 10), rows[:, :1, :, 1:2]),
        Placed("length-zero", "length-zero", (2, 0, 10), np.zeros((3, 0), dtype=np.int64)),
    )


def placed_rotations(op: str, options: dict[str, Any]) -> Iterator[Case]:
    """Yield the forms of x and positions for a rotation over several axes."""
    for placed in placed_forms():
        inputs = {"x": reals(op + placed.name, *placed.x), "positions": placed.positions}
        yield form(op, placed.name, placed.flags, inputs, options, placed.comment)


def mixed_forms(op: str, *, x: bool = True, **options: Any) -> tuple[Case, ...]:
    """Return the forms of x, if there is one, of positions and of frequencies on all axes."""

    def case(
        name: str, flags: str, shape: tuple[int, ...], positions: Any, heads: tuple[int, ...] = (), comment: str = ""
    ) -> Case:
        arrays: dict[str, Any] = {"x": reals(op + name, *shape)} if x else {}
        arrays["positions"] = np.asarray(positions, dtype=np.int64)
        arrays["frequencies"] = reals(op + name + "frequencies", 3, *heads, shape[-1] // 2) / 4
        return form(op, name, flags, arrays, options, comment)

    rows = np.asarray([[row] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)
    return (
        case("strided", "non-contiguous", (2, 3, 4, 6), rows, (1, 3, 1), "heads before tokens"),
        case("expanded", "broadcast-view", (-2, 4, 10), [[row, row] for row in PLACES], (), "one row stands for two"),
        case("batch-one", "batch-one", (1, 3, 4, 6), rows[:, :1], (1, 3, 1)),
        case("length-one", "length-one batch-one", (1, 3, 1, 10), rows[:, :1, :, 1:2], (1, 3, 1)),
        case("length-zero", "length-zero", (2, 0, 10), np.zeros((3, 0)), (2, 1)),
    )


def exchanged(a: int, b: int) -> Callable[[Any], Any]:
    """Return a function that exchanges two rows of positions."""

    def change(p: Real) -> Real:
        order = list(range(len(p)))
        order[a], order[b] = order[b], order[a]
        return p[order]

    return change


def first_row(p: Real) -> Real:
    """Return positions of which every row is the first one."""
    return np.broadcast_to(p[:, :1], p.shape) if p.ndim > 2 and p.shape[1] else p
