"""What several adapters need; it imports no library."""

from collections.abc import Iterator
from typing import NoReturn

from ..errors import Unsupported


def lacks(what: str) -> NoReturn:
    """Raise `Unsupported`: the library does not do this."""
    raise Unsupported(what)


def runs(positions: list[int] | list[float]) -> Iterator[tuple[slice, int | float]]:
    """Yield every stretch of consecutive positions, as a slice and the first of them: what a start position can express."""
    start = 0
    for stop in range(1, len(positions) + 1):
        if stop == len(positions) or positions[stop] != positions[stop - 1] + 1:
            yield slice(start, stop), positions[start]
            start = stop
