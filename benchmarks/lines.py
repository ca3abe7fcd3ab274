"""A line of the table: a call of posref, what does the same work instead, and the goal."""

from collections.abc import Callable
from typing import NamedTuple

Call = Callable[[], object]


class Missing(Exception):
    """The peer of a line is not installed, or cannot run here."""


class Work(NamedTuple):
    """What a line times. Without a peer it is posref's own CPU time; with `items`, items in a second of it."""

    ours: Call
    theirs: Call | None = None
    items: int = 0


class Line(NamedTuple):
    """
    A line of the table.

    `goal` is the largest ratio of posref's time to its peer's, or the largest number of CPU seconds, or the smallest number of
    items a second. `memory` is the largest ratio of peaks of memory: posref's to the peer's, or to the bytes of posref's result
    if `of_result`. A line without a goal is only shown. `build` takes whether sizes are to be small. `cost` says what it would
    take to reach a goal that is missed.
    """

    name: str
    peer: str
    goal: float | None
    build: Callable[[bool], Work]
    memory: float | None = None
    of_result: bool = False
    cost: str = ""
