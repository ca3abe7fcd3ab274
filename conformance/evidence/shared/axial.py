"""Positions and helpers that rotations over several position axes share."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from posref.rotary.axial_table import axes_of_pairs

from ..tools import Case, Function, Real, around_with, floats, form_case, reals, seed_of
from .rotary import PLACES

Change = Callable[[list[int], list[int], str], list[int]]  # of the right axes of pairs, the sections and the arrangement
ARRANGED = {"chunked": [1, 3, 2], "interleaved": [3, 2, 1], "ernie": [2, 2, 2], "round_robin": [1, 3, 2]}
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
    x: tuple[int, ...]
    positions: Any
    comment: str = ""
    form: str = ""


def placed_forms() -> tuple[Placed, ...]:
    """Return the forms of positions of three axes."""
    rows = np.asarray([[row] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)
    return (
        Placed("strided", (2, 3, 4, 10), rows, "heads before tokens", form="non-contiguous"),
        Placed("strided-rows", (4, 12), np.asarray(PLACES), form="non-contiguous"),
        Placed("length-one", (1, 3, 1, 10), rows[:, :1, :, 1:2]),
    )


def placed_rotations(op: str, options: dict[str, Any]) -> Iterator[Case]:
    """Yield the forms of x and positions for a rotation over several axes."""
    for placed in placed_forms():
        inputs = {"x": reals(op + placed.name, *placed.x), "positions": placed.positions}
        yield form_case(op, placed.name, inputs, options, placed.comment, placed.form)


def mixed_forms(op: str, *, x: bool = True, **options: Any) -> tuple[Case, ...]:
    """Return the forms of x, if there is one, of positions and of frequencies on all axes."""

    def case(
        name: str, shape: tuple[int, ...], positions: Any, heads: tuple[int, ...] = (), comment: str = "", form: str = ""
    ) -> Case:
        arrays: dict[str, Any] = {"x": reals(op + name, *shape)} if x else {}
        arrays["positions"] = np.asarray(positions, dtype=np.int64)
        arrays["frequencies"] = reals(op + name + "frequencies", 3, *heads, shape[-1] // 2) / 4
        return form_case(op, name, arrays, options, comment, form=form)

    rows = np.asarray([[row] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)
    return (
        case("expanded", (-2, 4, 10), [[row, row] for row in PLACES], (), "one row stands for two", form="broadcast-view"),
        case("length-one", (1, 3, 1, 10), rows[:, :1, :, 1:2], (1, 3, 1)),
        case("length-zero", (2, 0, 10), np.zeros((3, 0)), (2, 1)),
    )


def exchanged(a: int, b: int) -> Callable[[Any], Any]:
    """Return a function that exchanges two rows of positions."""

    def change(p: Real) -> Real:
        order = list(range(len(p)))
        order[a], order[b] = order[b], order[a]
        return p[order]

    return change


def first_row(p: Real) -> Real:
    """Return positions with the first row in every row."""
    return np.broadcast_to(p[:, :1], p.shape) if p.ndim > 2 and p.shape[1] else p


@around_with
def with_axes(
    change: Change,
    function: Function,
    positions: Any,
    inv_freq: Any,
    /,
    *,
    sections: Any,
    arrangement: str,
    attention_factor: float = 1.0,
    **rest: Any,
) -> Any:
    """Return a wrap of `axial_table` that changes the axis of every pair."""
    axes = change(axes_of_pairs("axial_table", sections, arrangement), list(sections), arrangement)
    angle = np.moveaxis(np.asarray(positions, dtype=np.float64)[axes, ...], 0, -1) * np.asarray(inv_freq)
    return np.cos(angle) * attention_factor, np.sin(angle) * attention_factor
